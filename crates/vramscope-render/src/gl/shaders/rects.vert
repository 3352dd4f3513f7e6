#version 300 es
// Grid lines, marks and the baseline: one instance per rectangle.
precision highp float;

uniform vec2 u_canvas;  // device pixels

layout(location = 0) in vec4 a_rect;    // device pixels from the lower left
layout(location = 1) in vec4 a_color;
layout(location = 2) in float a_dash;   // device pixels of a dash with its gap; 0: solid

flat out vec4 v_color;
flat out float v_dash;

void main() {
    vec2 at = vec2(
        (gl_VertexID & 1) == 0 ? a_rect.x : a_rect.z,
        (gl_VertexID & 2) == 0 ? a_rect.y : a_rect.w);
    v_color = a_color;
    v_dash = a_dash;
    gl_Position = vec4(at / u_canvas * 2.0 - 1.0, 0.0, 1.0);
}
