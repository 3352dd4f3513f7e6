//! Stores the tiles of a timeline in textures, and draws them.
//!
//! Strips are uploaded once, in coordinates of their tile. A frame sends only the placements of the
//! tiles: 48 bytes per 1,024 strips. All tiles of a page (see `chunks`) take one or two draw calls.
//! The second call draws nearly empty chunks with fewer vertices, so that a tile of a dozen strips
//! does not cost a thousand quads.

use bytemuck::{Pod, Zeroable};
use glow::HasContext as _;

use super::chunks::{CHUNK_STRIPS, Chunk, FreeChunks, PAGE_CHUNKS, runs};
use super::{Counters, GlError, program};
use crate::{PALETTE_LEN, Palette, Placement, Rgba, StripColumns, TILE_COLUMNS, TILE_ROWS};

/// Maximum strips of a chunk that is drawn with the small vertex count.
const SMALL_CHUNK_STRIPS: u32 = 64;

/// One instance of the strips program: one chunk of a tile.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Instance {
    placement: Placement,
    row: u32,
    count: u32,
}

// `set_instance_pointers` hardcodes the offsets of the fields as vertex attributes.
const _: () = assert!(size_of::<Instance>() == 48);

/// Textures for [`PAGE_CHUNKS`] chunks, and the chunks to draw in this frame.
#[derive(Debug)]
struct Page {
    positions: glow::Texture,
    colors: glow::Texture,
    blocks: glow::Texture,
    large: Vec<Instance>,
    small: Vec<Instance>,
}

/// A tile in GPU memory. Free it with [`StripRenderer::release`].
#[derive(Debug)]
#[must_use = "dropping a tile leaks its chunks of the textures"]
pub struct GpuTile {
    chunks: Vec<Chunk>,
    strips: u32,
}

/// Style of strips that can change every frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StripStyle {
    /// Background of the plot, which is mixed into hairlines.
    pub ground: Rgba,
    /// Outline and tint of the selected block.
    pub accent: Rgba,
    /// Color that is mixed into the hovered block.
    pub lift: Rgba,
    /// The selected block.
    pub selected: Option<u32>,
    /// First and last edge of the selected block's life, in device pixels from the left. The
    /// outline is closed at these edges.
    pub ends: Option<[f32; 2]>,
    /// The block under the pointer.
    pub hovered: Option<u32>,
    /// Width of an outline in device pixels.
    pub line: f32,
}

#[derive(Debug)]
struct Uniforms {
    canvas: Option<glow::UniformLocation>,
    selected: Option<glow::UniformLocation>,
    hovered: Option<glow::UniformLocation>,
    ends: Option<glow::UniformLocation>,
    line: Option<glow::UniformLocation>,
    accent: Option<glow::UniformLocation>,
    lift: Option<glow::UniformLocation>,
    ground: Option<glow::UniformLocation>,
}

/// Stores tiles in textures and draws them.
#[derive(Debug)]
pub struct StripRenderer {
    program: glow::Program,
    uniforms: Uniforms,
    vao: glow::VertexArray,
    corners: glow::Buffer,
    instances: glow::Buffer,
    /// Capacity of the instance buffer in instances.
    capacity: usize,
    palette: glow::Texture,
    pages: Vec<Page>,
    free: FreeChunks,
}

impl StripRenderer {
    /// Creates the program and its buffers, with the colors of `palette`.
    ///
    /// # Errors
    /// When the driver rejects a shader or cannot create an object.
    pub fn new(gl: &glow::Context, palette: &Palette) -> Result<Self, GlError> {
        let program = program::link(
            gl,
            "strips",
            include_str!("shaders/strips.vert"),
            include_str!("shaders/strips.frag"),
        )?;
        let mut indices = Vec::with_capacity(CHUNK_STRIPS * 6);
        for quad in 0..CHUNK_STRIPS as u16 {
            indices.extend([0, 1, 2, 2, 1, 3].map(|corner| quad * 4 + corner));
        }
        // SAFETY: this context creates the objects here, and the slice is read before the call
        // returns.
        let made = unsafe {
            let at = |name| gl.get_uniform_location(program, name);
            let uniforms = Uniforms {
                canvas: at("u_canvas"),
                selected: at("u_selected"),
                hovered: at("u_hovered"),
                ends: at("u_ends"),
                line: at("u_line"),
                accent: at("u_accent"),
                lift: at("u_lift"),
                ground: at("u_ground"),
            };
            gl.use_program(Some(program));
            for (unit, name) in
                ["u_positions", "u_colors", "u_blocks", "u_palette"].into_iter().enumerate()
            {
                gl.uniform_1_i32(at(name).as_ref(), unit as i32);
            }
            gl.uniform_2_f32(at("u_tile").as_ref(), TILE_COLUMNS as f32, TILE_ROWS as f32);

            let vao = gl.create_vertex_array().map_err(GlError::object("vertex array"))?;
            let corners = gl.create_buffer().map_err(GlError::object("buffer"))?;
            let instances = gl.create_buffer().map_err(GlError::object("buffer"))?;
            gl.bind_vertex_array(Some(vao));
            gl.bind_buffer(glow::ELEMENT_ARRAY_BUFFER, Some(corners));
            gl.buffer_data_u8_slice(
                glow::ELEMENT_ARRAY_BUFFER,
                bytemuck::cast_slice(&indices),
                glow::STATIC_DRAW,
            );
            for attribute in 0..4 {
                gl.enable_vertex_attrib_array(attribute);
                gl.vertex_attrib_divisor(attribute, 1);
            }
            gl.bind_vertex_array(None);
            let rows = PALETTE_LEN.div_ceil(256) as i32;
            let palette = texture(gl, glow::RGBA8, 256, rows)?;
            Self {
                program,
                uniforms,
                vao,
                corners,
                instances,
                capacity: 0,
                palette,
                pages: Vec::new(),
                free: FreeChunks::default(),
            }
        };
        made.set_palette(gl, palette);
        Ok(made)
    }

    /// Replaces the palette. The tiles are not touched.
    pub fn set_palette(&self, gl: &glow::Context, palette: &Palette) {
        let entries = palette.entries();
        let mut texels: Vec<Rgba> = Vec::with_capacity(PALETTE_LEN.next_multiple_of(256));
        texels.extend_from_slice(entries);
        // Pads the last row with gray. The shader maps "no stack" to its last texel.
        texels.resize(PALETTE_LEN.next_multiple_of(256), entries[PALETTE_LEN - 1]);
        // SAFETY: the texture belongs to this context and is exactly as large as `texels`.
        unsafe {
            gl.bind_texture(glow::TEXTURE_2D, Some(self.palette));
            let pixels = glow::PixelUnpackData::Slice(Some(bytemuck::cast_slice(&texels)));
            let rows = (texels.len() / 256) as i32;
            gl.tex_sub_image_2d(
                glow::TEXTURE_2D,
                0,
                0,
                0,
                256,
                rows,
                glow::RGBA,
                glow::UNSIGNED_BYTE,
                pixels,
            );
        }
    }

    /// Uploads a tile to the GPU.
    ///
    /// # Errors
    /// When the driver cannot allocate another page.
    pub fn upload(
        &mut self,
        gl: &glow::Context,
        strips: StripColumns<'_>,
    ) -> Result<GpuTile, GlError> {
        let wanted = strips.len().div_ceil(CHUNK_STRIPS);
        while self.pages.len() < self.free.pages_for(wanted) as usize {
            let positions = texture(gl, glow::RGBA32F, CHUNK_STRIPS as i32, PAGE_CHUNKS as i32)?;
            let colors = texture(gl, glow::R32UI, CHUNK_STRIPS as i32, PAGE_CHUNKS as i32)?;
            let blocks = texture(gl, glow::R32UI, CHUNK_STRIPS as i32, PAGE_CHUNKS as i32)?;
            self.pages.push(Page {
                positions,
                colors,
                blocks,
                large: Vec::new(),
                small: Vec::new(),
            });
            self.free.add_page();
        }
        let chunks = self.free.take(wanted);
        let mut from = 0;
        for (first, rows) in runs(&chunks) {
            let page = &self.pages[(first / PAGE_CHUNKS) as usize];
            let row = first % PAGE_CHUNKS;
            let to = (from + rows as usize * CHUNK_STRIPS).min(strips.len());
            let positions: &[u8] = bytemuck::cast_slice(&strips.positions()[from..to]);
            write(gl, page.positions, (glow::RGBA, glow::FLOAT, 16), row, positions);
            let words = (glow::RED_INTEGER, glow::UNSIGNED_INT, 4);
            write(gl, page.colors, words, row, bytemuck::cast_slice(&strips.colors()[from..to]));
            write(gl, page.blocks, words, row, bytemuck::cast_slice(&strips.blocks()[from..to]));
            from = to;
        }
        Ok(GpuTile { chunks, strips: strips.len() as u32 })
    }

    /// Frees the chunks of a tile.
    pub fn release(&mut self, tile: GpuTile) {
        self.free.give(tile.chunks);
    }

    /// Adds a tile to the frame. Parts outside the placement's clip are cut off.
    pub fn place(&mut self, tile: &GpuTile, placement: Placement) {
        if placement.clip().is_empty() {
            return;
        }
        let mut left = tile.strips;
        for &chunk in &tile.chunks {
            let count = left.min(CHUNK_STRIPS as u32);
            left -= count;
            let page = &mut self.pages[(chunk / PAGE_CHUNKS) as usize];
            let instance = Instance { placement, row: chunk % PAGE_CHUNKS, count };
            if count > SMALL_CHUNK_STRIPS {
                page.large.push(instance);
            } else {
                page.small.push(instance);
            }
        }
    }

    /// Draws the tiles placed since the last call. `canvas` is the size of the canvas in device
    /// pixels.
    pub fn draw(
        &mut self,
        gl: &glow::Context,
        canvas: [u32; 2],
        style: &StripStyle,
        counters: &mut Counters,
    ) {
        let total: usize = self.pages.iter().map(|page| page.large.len() + page.small.len()).sum();
        if total == 0 {
            return;
        }
        // SAFETY: the objects belong to this context. The instance buffer is made large enough
        // before it is filled and read.
        unsafe {
            gl.use_program(Some(self.program));
            self.set_uniforms(gl, canvas, style);
            gl.bind_vertex_array(Some(self.vao));
            gl.bind_buffer(glow::ARRAY_BUFFER, Some(self.instances));
            // New storage for every frame, so that the driver does not wait until the previous
            // frame is drawn.
            self.capacity = self.capacity.max(total.next_power_of_two());
            gl.buffer_data_size(
                glow::ARRAY_BUFFER,
                (self.capacity * size_of::<Instance>()) as i32,
                glow::STREAM_DRAW,
            );
            bind(gl, 3, self.palette);
            let mut from = 0;
            for page in &mut self.pages {
                if page.large.is_empty() && page.small.is_empty() {
                    continue;
                }
                bind(gl, 0, page.positions);
                bind(gl, 1, page.colors);
                bind(gl, 2, page.blocks);
                for (instances, quads) in [
                    (&mut page.large, CHUNK_STRIPS as i32),
                    (&mut page.small, SMALL_CHUNK_STRIPS as i32),
                ] {
                    if instances.is_empty() {
                        continue;
                    }
                    let offset = (from * size_of::<Instance>()) as i32;
                    gl.buffer_sub_data_u8_slice(
                        glow::ARRAY_BUFFER,
                        offset,
                        bytemuck::cast_slice(instances),
                    );
                    set_instance_pointers(gl, offset);
                    let n = instances.len();
                    gl.draw_elements_instanced(
                        glow::TRIANGLES,
                        quads * 6,
                        glow::UNSIGNED_SHORT,
                        0,
                        n as i32,
                    );
                    counters.draws += 1;
                    let strips = instances.iter().map(|i| i.count).sum::<u32>();
                    counters.strips += strips;
                    counters.instances += strips;
                    from += n;
                    instances.clear();
                }
            }
            gl.bind_vertex_array(None);
        }
    }

    /// # Safety
    /// The program must belong to this context and be in use.
    unsafe fn set_uniforms(&self, gl: &glow::Context, canvas: [u32; 2], style: &StripStyle) {
        let at = &self.uniforms;
        let [accent, lift, ground] = [style.accent, style.lift, style.ground].map(program::rgb);
        // Without ends, both are beyond any canvas.
        let [first, last] = style.ends.unwrap_or([-1e9, 1e9]);
        // SAFETY: guaranteed by the caller.
        unsafe {
            gl.uniform_2_f32(at.canvas.as_ref(), canvas[0] as f32, canvas[1] as f32);
            // Block numbers are below `NO_BLOCK`, so `u32::MAX` matches no block and no merged
            // strip.
            gl.uniform_1_u32(at.selected.as_ref(), style.selected.unwrap_or(u32::MAX));
            gl.uniform_1_u32(at.hovered.as_ref(), style.hovered.unwrap_or(u32::MAX));
            gl.uniform_2_f32(at.ends.as_ref(), first, last);
            gl.uniform_1_f32(at.line.as_ref(), style.line);
            gl.uniform_3_f32(at.accent.as_ref(), accent[0], accent[1], accent[2]);
            gl.uniform_3_f32(at.lift.as_ref(), lift[0], lift[1], lift[2]);
            gl.uniform_3_f32(at.ground.as_ref(), ground[0], ground[1], ground[2]);
        }
    }

    /// Deletes the GL objects.
    pub fn destroy(self, gl: &glow::Context) {
        // SAFETY: the objects belong to this context, and `self` is consumed.
        unsafe {
            gl.delete_program(self.program);
            gl.delete_vertex_array(self.vao);
            gl.delete_buffer(self.corners);
            gl.delete_buffer(self.instances);
            gl.delete_texture(self.palette);
            for page in self.pages {
                gl.delete_texture(page.positions);
                gl.delete_texture(page.colors);
                gl.delete_texture(page.blocks);
            }
        }
    }
}

/// Creates a texture for `texelFetch`: without mipmaps, and without filtering, which 32-bit floats
/// do not support.
fn texture(
    gl: &glow::Context,
    format: u32,
    width: i32,
    height: i32,
) -> Result<glow::Texture, GlError> {
    // SAFETY: the calls take no pointers, and the texture is created here.
    unsafe {
        let texture = gl.create_texture().map_err(GlError::object("texture"))?;
        gl.bind_texture(glow::TEXTURE_2D, Some(texture));
        gl.tex_storage_2d(glow::TEXTURE_2D, 1, format, width, height);
        for (parameter, value) in [
            (glow::TEXTURE_MIN_FILTER, glow::NEAREST),
            (glow::TEXTURE_MAG_FILTER, glow::NEAREST),
            (glow::TEXTURE_WRAP_S, glow::CLAMP_TO_EDGE),
            (glow::TEXTURE_WRAP_T, glow::CLAMP_TO_EDGE),
        ] {
            gl.tex_parameter_i32(glow::TEXTURE_2D, parameter, value as i32);
        }
        Ok(texture)
    }
}

/// Writes rows of a texture, starting at `row`. `bytes` may end within the last row. `format` is
/// the layout, type and bytes per texel of the data.
fn write(
    gl: &glow::Context,
    texture: glow::Texture,
    format: (u32, u32, usize),
    row: u32,
    bytes: &[u8],
) {
    let (layout, kind, texel) = format;
    let whole = bytes.len() / (CHUNK_STRIPS * texel);
    let (full, rest) = bytes.split_at(whole * CHUNK_STRIPS * texel);
    let parts = [
        (row as i32, CHUNK_STRIPS, whole, full),
        (row as i32 + whole as i32, rest.len() / texel, 1, rest),
    ];
    for (y, width, height, part) in parts {
        if part.is_empty() {
            continue;
        }
        let pixels = glow::PixelUnpackData::Slice(Some(part));
        // SAFETY: `part` has width x height texels of this format, aligned to 4 bytes as the
        // default unpack alignment requires.
        unsafe {
            gl.bind_texture(glow::TEXTURE_2D, Some(texture));
            gl.tex_sub_image_2d(
                glow::TEXTURE_2D,
                0,
                0,
                y,
                width as i32,
                height as i32,
                layout,
                kind,
                pixels,
            );
        }
    }
}

/// # Safety
/// The texture must belong to this context.
unsafe fn bind(gl: &glow::Context, unit: u32, texture: glow::Texture) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        gl.active_texture(glow::TEXTURE0 + unit);
        gl.bind_texture(glow::TEXTURE_2D, Some(texture));
    }
}

/// Points the vertex attributes at the instances that start at byte `offset` of the bound buffer.
/// OpenGL ES 3.0 has no base instance for draw calls.
///
/// # Safety
/// The vertex array and the instance buffer must be bound.
unsafe fn set_instance_pointers(gl: &glow::Context, offset: i32) {
    let stride = size_of::<Instance>() as i32;
    // SAFETY: the offsets are those of the fields of `Instance`, whose size is asserted above.
    unsafe {
        gl.vertex_attrib_pointer_f32(0, 4, glow::FLOAT, false, stride, offset);
        gl.vertex_attrib_pointer_f32(1, 2, glow::FLOAT, false, stride, offset + 16);
        gl.vertex_attrib_pointer_f32(2, 4, glow::FLOAT, false, stride, offset + 24);
        gl.vertex_attrib_pointer_i32(3, 2, glow::UNSIGNED_INT, stride, offset + 40);
    }
}
