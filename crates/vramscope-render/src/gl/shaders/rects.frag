#version 300 es
precision highp float;

flat in vec4 v_color;
flat in float v_dash;

out vec4 o_color;

void main() {
    // Along a thin line one coordinate is constant, so the sum advances with the other one.
    float along = floor(gl_FragCoord.x) + floor(gl_FragCoord.y);
    if (v_dash > 0.0 && mod(along, v_dash) >= v_dash * 0.5) discard;
    o_color = v_color;
}
