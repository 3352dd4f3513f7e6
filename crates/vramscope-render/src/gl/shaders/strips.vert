#version 300 es
// A tile's strips in chunks of 1024 quads an instance: software GL pays per instance, so an instance is not a quad.
// A chunk is one row of the three column textures; the instance's attributes say which, and where its tile lies.
precision highp float;
precision highp int;

uniform highp sampler2D u_positions;   // x0, y0, x1, y1 in the tile's columns and rows
uniform highp usampler2D u_colors;    // color words
uniform highp usampler2D u_blocks;     // block numbers; bit 31: several blocks
uniform lowp sampler2D u_palette;      // 256 hues in 4 steps; the last row is the gray of "no stack"
uniform vec2 u_canvas;                 // device pixels
uniform vec2 u_tile;                   // columns and rows of a tile
uniform uint u_selected;               // block numbers; all ones: none
uniform uint u_hovered;
uniform vec2 u_ends;                   // first and last pixel column of the selected block's life
uniform float u_line;                  // pixels of an outline
uniform vec3 u_accent;
uniform vec3 u_lift;

layout(location = 0) in vec4 a_reference;  // a point of the tile, and the device pixel where it lies
layout(location = 1) in vec2 a_scale;      // device pixels a column, and a row
layout(location = 2) in vec4 a_clip;       // the device pixels that the tile may touch
layout(location = 3) in uvec2 a_chunk;     // the chunk's row in the textures, and how many strips it holds

flat out vec4 v_look;    // the color, and the pixel row above which it is hairline: the end of a block, and not of several
flat out vec4 v_inner;   // what lies outside of this is outline

const float FAR = 1.0e9;

// Placement::snap in Rust is the same arithmetic.
vec2 snap(vec2 p) {
    return clamp(floor((p - a_reference.xy) * a_scale + a_reference.zw + 0.5), a_clip.xy, a_clip.zw);
}

void main() {
    int corner = gl_VertexID & 3;
    int index = gl_VertexID >> 2;
    v_look = vec4(0.0);
    v_inner = vec4(-FAR, -FAR, FAR, FAR);
    if (index >= int(a_chunk.y)) {
        gl_Position = vec4(-2.0, -2.0, 0.0, 1.0);  // all four corners: no area
        return;
    }
    ivec2 texel = ivec2(index, int(a_chunk.x));
    vec4 strip = texelFetch(u_positions, texel, 0);
    bvec2 near_edge = lessThanEqual(strip.xy, vec2(0.0));
    bvec2 far_edge = greaterThanEqual(strip.zw, u_tile);
    // An edge on the tile's border takes the border's pixel, rounded once for both neighbors.
    vec2 low = mix(snap(strip.xy), a_clip.xy, near_edge);
    vec2 high = mix(snap(strip.zw), a_clip.zw, far_edge);

    uint word = texelFetch(u_colors, texel, 0).r;
    vec3 color = texelFetch(u_palette, ivec2(int(word & 255u), int(min(word >> 8, 4u))), 0).rgb;
    uint block = texelFetch(u_blocks, texel, 0).r;
    bool is_several = block >> 31 == 1u;
    float height = high.y - low.y;
    float hair = FAR;
    if (block == u_selected) {
        color = mix(color, u_accent, 0.35);
        // No outline where the tile, and not the block, ends.
        v_inner = vec4(
            u_ends.x + u_line, near_edge.y ? -FAR : low.y + u_line,
            u_ends.y - u_line, far_edge.y ? FAR : high.y - u_line);
    } else if (height > 3.0 && !far_edge.y && !is_several) {
        hair = high.y - 1.0;
    }
    if (block == u_hovered) {
        color = mix(color, u_lift, 0.25);
    }
    v_look = vec4(color, hair);

    vec2 at = vec2((corner & 1) == 0 ? low.x : high.x, (corner & 2) == 0 ? low.y : high.y);
    gl_Position = vec4(at / u_canvas * 2.0 - 1.0, 0.0, 1.0);
}
