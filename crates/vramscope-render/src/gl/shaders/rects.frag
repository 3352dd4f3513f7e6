#version 300 es
precision highp float;

flat in vec4 v_color;
flat in float v_dash;

out vec4 o_color;

void main() {
    // Along a thin line one coordinate does not change, so the sum runs along the line whichever way it lies.
    if (v_dash > 0.0 && mod(floor(gl_FragCoord.x) + floor(gl_FragCoord.y), v_dash) >= v_dash * 0.5) discard;
    o_color = v_color;
}
