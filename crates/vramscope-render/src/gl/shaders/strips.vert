#version 300 es
// Draws the strips of a tile. An instance is a chunk of 1,024 quads and not a single quad, because
// software GL has a high cost per instance. A chunk is one row of the three strip textures. The
// attributes of an instance give its row and the placement of its tile.
precision highp float;
precision highp int;

uniform highp sampler2D u_positions;   // x0, y0, x1, y1 in the tile's columns and rows
uniform highp usampler2D u_colors;    // color words
uniform highp usampler2D u_blocks;     // block numbers; bit 31: merged
uniform lowp sampler2D u_palette;      // 4 rows of 256 hues; fixed colors and "no stack" in row 4
uniform vec2 u_canvas;                 // device pixels
uniform vec2 u_tile;                   // columns and rows of a tile
uniform uint u_selected;               // block number; all ones: none
uniform uint u_hovered;                // block number; all ones: none
uniform vec2 u_ends;                   // edges of the selected block's life, in device pixels
uniform float u_line;                  // device pixels of an outline
uniform vec3 u_accent;
uniform vec3 u_lift;
uniform vec3 u_ground;

layout(location = 0) in vec4 a_reference;  // a point of the tile, and its device pixel
layout(location = 1) in vec2 a_scale;      // device pixels per column, and per row
layout(location = 2) in vec4 a_clip;       // the device pixels that the tile may touch
layout(location = 3) in uvec2 a_chunk;     // the chunk's row in the textures, and its strip count

flat out vec4 v_look;    // color, and the pixel row above which the hairline begins
flat out vec4 v_inner;   // the strip without its outline, in device pixels
// Of a line: its middle, half its width, and 1 (along x) or 2 (along y). Of a block: 0, or -1 for
// a hatch, in the last component.
flat out vec4 v_stroke;
flat out float v_edge;   // the pixel row below which the edge of a group is

const float FAR = 1.0e9;
// Color words of lines. Must match Color::is_line in Rust.
const uint FIRST_LINE = 1064u;
const uint CASING = 1068u;
const uint HATCH = 65536u;
// Must match the bits of Color in Rust.
const uint DIMMED = 1061u;
const uint EDGE = 131072u;
// Strength of a shade, and the least of a share above 0: one hit in a thousand blocks is visible.
// Must match SHADE and LEAST_SHARE in Rust.
const float SHADE = 0.12;
const float LEAST_SHARE = 0.2;

vec3 color_of(uint word) {
    return texelFetch(u_palette, ivec2(int(word & 255u), int(min(word >> 8, 4u))), 0).rgb;
}

// Must match Placement::snap in Rust.
vec2 snap(vec2 p) {
    vec2 pixel = floor((p - a_reference.xy) * a_scale + a_reference.zw + 0.5);
    return clamp(pixel, a_clip.xy, a_clip.zw);
}

void main() {
    int corner = gl_VertexID & 3;
    int index = gl_VertexID >> 2;
    v_look = vec4(0.0);
    v_inner = vec4(-FAR, -FAR, FAR, FAR);
    v_stroke = vec4(0.0);
    v_edge = -FAR;
    if (index >= int(a_chunk.y)) {
        gl_Position = vec4(-2.0, -2.0, 0.0, 1.0);  // all four corners, so the quad has no area
        return;
    }
    ivec2 texel = ivec2(index, int(a_chunk.x));
    vec4 strip = texelFetch(u_positions, texel, 0);
    bvec2 near_edge = lessThanEqual(strip.xy, vec2(0.0));
    bvec2 far_edge = greaterThanEqual(strip.zw, u_tile);
    // An edge on the tile's border gets the border's pixel, rounded once for both tiles.
    vec2 low = mix(snap(strip.xy), a_clip.xy, near_edge);
    vec2 high = mix(snap(strip.zw), a_clip.zw, far_edge);

    uint words = texelFetch(u_colors, texel, 0).r;
    uint word = words & 65535u;
    vec3 color = color_of(word);
    if (word >= FIRST_LINE && word <= CASING) {
        // 1.5 pixels along x, so that a level line is distinct, and 1 pixel where it jumps, so that
        // the jump hides little of the blocks.
        bool is_jump = strip.x >= strip.z;
        vec2 middle = (strip.xy - a_reference.xy) * a_scale + a_reference.zw;
        float half_width = (is_jump ? 0.5 : 0.75) * u_line;
        // Not clamped, so that a jump outside the clip has no area.
        if (is_jump) middle.x = floor(middle.x + 0.5) + half_width;
        // The stroke fades over another half pixel.
        float cover = half_width + (word == CASING ? u_line : 0.0);
        v_look = vec4(color, FAR);
        v_stroke = vec4(middle, cover, is_jump ? 2.0 : 1.0);
        vec2 end = (strip.zw - a_reference.xy) * a_scale + a_reference.zw;
        float reach = cover + 1.0;
        if (is_jump) {
            // Up to the outer edges of the level lines at both ends.
            float overlap = 0.75 * u_line;
            low = vec2(middle.x - reach, middle.y - overlap);
            high = vec2(middle.x + reach, end.y + overlap);
        } else {
            low.y = middle.y - reach;
            high.y = middle.y + reach;
        }
        low = clamp(floor(low), a_clip.xy, a_clip.zw);
        high = clamp(ceil(high), a_clip.xy, a_clip.zw);
        vec2 at = vec2((corner & 1) == 0 ? low.x : high.x, (corner & 2) == 0 ? low.y : high.y);
        gl_Position = vec4(at / u_canvas * 2.0 - 1.0, 0.0, 1.0);
        return;
    }
    if ((words & HATCH) != 0u) v_stroke.w = -1.0;
    uint shade = (words >> 18) & 3u;
    if (shade == 1u) color = mix(color, u_ground, SHADE);
    if (shade == 2u) color = mix(color, u_lift, SHADE);
    uint share = words >> 24;
    if (share != 0u)
        color = mix(color_of(DIMMED), color, max(LEAST_SHARE, float(share) / 256.0));
    uint block = texelFetch(u_blocks, texel, 0).r;
    // The hairline separates a block from the one above it. Merged strips have none.
    bool is_merged = block >> 31 == 1u;
    float height = high.y - low.y;
    float hair = FAR;
    if ((words & EDGE) != 0u && height > 4.0) v_edge = low.y + 1.0;
    if (block == u_selected) {
        color = mix(color, u_accent, 0.35);
        // No outline at an edge of the tile: the block continues in the next tile.
        v_inner = vec4(
            u_ends.x + u_line, near_edge.y ? -FAR : low.y + u_line,
            u_ends.y - u_line, far_edge.y ? FAR : high.y - u_line);
    } else if (height > 3.0 && !far_edge.y && !is_merged) {
        hair = high.y - 1.0;
    }
    if (block == u_hovered) {
        color = mix(color, u_lift, 0.25);
    }
    v_look = vec4(color, hair);

    vec2 at = vec2((corner & 1) == 0 ? low.x : high.x, (corner & 2) == 0 ? low.y : high.y);
    gl_Position = vec4(at / u_canvas * 2.0 - 1.0, 0.0, 1.0);
}
