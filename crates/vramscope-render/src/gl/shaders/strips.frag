#version 300 es
precision highp float;

uniform vec3 u_accent;
uniform vec3 u_ground;

flat in vec4 v_look;
flat in vec4 v_inner;

out vec4 o_color;

void main() {
    vec2 at = gl_FragCoord.xy;
    vec3 color = at.y > v_look.w ? mix(v_look.rgb, u_ground, 0.45) : v_look.rgb;
    bool outline = any(lessThan(at, v_inner.xy)) || any(greaterThan(at, v_inner.zw));
    o_color = vec4(outline ? u_accent : color, 1.0);
}
