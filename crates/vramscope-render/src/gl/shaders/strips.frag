#version 300 es
precision highp float;

uniform vec3 u_accent;
uniform vec3 u_ground;
uniform float u_line;

flat in vec4 v_look;
flat in vec4 v_inner;
flat in vec4 v_stroke;
flat in float v_edge;

out vec4 o_color;

// Share of the background in the gaps of a hatch. Must match HATCH_GAP in Rust.
const float HATCH_GAP = 0.5;
const float HATCH = 6.0;  // a stripe and a gap, along x, in line widths

void main() {
    vec2 at = gl_FragCoord.xy;
    if (v_stroke.w > 0.0) {
        // A line: `v_stroke` is its middle (x, or y where x is far away), half its width, and its
        // kind. The edge of a stroke fades into the casing, which is drawn below it.
        float far = v_stroke.w > 1.5 ? abs(at.x - v_stroke.x) : abs(at.y - v_stroke.y);
        float cover = clamp(v_stroke.z + 0.5 - far, 0.0, 1.0);
        if (cover <= 0.0) discard;
        o_color = vec4(mix(u_ground, v_look.rgb, cover), 1.0);
        return;
    }
    vec3 color = v_look.rgb;
    bool is_gap = v_stroke.w < 0.0 && mod(at.x + at.y, HATCH * u_line) >= 0.5 * HATCH * u_line;
    if (is_gap) color = mix(color, u_ground, HATCH_GAP);
    if (at.y > v_look.w) color = mix(color, u_ground, 0.45);
    if (at.y < v_edge) color = u_ground;
    bool outline = any(lessThan(at, v_inner.xy)) || any(greaterThan(at, v_inner.zw));
    o_color = vec4(outline ? u_accent : color, 1.0);
}
