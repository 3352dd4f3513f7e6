//! The tiles of a timeline.
//!
//! Strips stay where they were uploaded and in the tile's own numbers; a frame sends only where
//! each tile lies, 48 bytes for every 1024 strips. All tiles of a page (see `chunks`) are one draw
//! call, or two: chunks that are nearly empty are drawn with fewer vertices, since a tile of a
//! dozen strips should not cost a thousand quads.

use bytemuck::{Pod, Zeroable};
use glow::HasContext as _;

use super::chunks::{CHUNK, Chunk, FreeChunks, PAGE, runs};
use super::{Counters, GlError, program};
use crate::{PALETTE_LEN, Palette, Placement, Rgba, StripColumns, TILE_COLUMNS, TILE_ROWS};

/// Strips up to which a chunk is drawn with the short vertex count.
const FEW: u32 = 64;

/// One instance of the strips program.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Instance {
    placement: Placement,
    row: u32,
    count: u32,
}

// The vertex attributes below are at these offsets.
const _: () = assert!(size_of::<Instance>() == 48);

/// Textures for `PAGE` chunks, and what is to be drawn of them in this frame.
#[derive(Debug)]
struct Page {
    positions: glow::Texture,
    colors: glow::Texture,
    blocks: glow::Texture,
    many: Vec<Instance>,
    few: Vec<Instance>,
}

/// A tile in the GPU's memory. Give it back with [`StripRenderer::release`].
#[derive(Debug)]
#[must_use = "a tile that is dropped keeps its place in the textures"]
pub struct GpuTile {
    chunks: Vec<Chunk>,
    strips: u32,
}

/// What changes the look of strips from frame to frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StripStyle {
    /// What hairlines are mixed with: the plot's ground.
    pub ground: Rgba,
    /// The outline and tint of the selection.
    pub accent: Rgba,
    /// What the hovered block is mixed with.
    pub lift: Rgba,
    /// The selected block.
    pub selected: Option<u32>,
    /// The device pixels (from the left) between which the selected block lives: its outline closes
    /// there.
    pub ends: Option<[f32; 2]>,
    /// The block under the pointer.
    pub hovered: Option<u32>,
    /// Device pixels of an outline.
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

/// Keeps tiles in textures and draws them.
#[derive(Debug)]
pub struct StripRenderer {
    program: glow::Program,
    uniforms: Uniforms,
    vao: glow::VertexArray,
    corners: glow::Buffer,
    instances: glow::Buffer,
    /// Instances that the buffer has room for.
    room: usize,
    palette: glow::Texture,
    pages: Vec<Page>,
    free: FreeChunks,
}

impl StripRenderer {
    /// Sets up, in the colors of `palette`.
    ///
    /// # Errors
    /// When the driver refuses a shader or an object.
    pub fn new(gl: &glow::Context, palette: &Palette) -> Result<Self, GlError> {
        let program = program::link(
            gl,
            "strips",
            include_str!("shaders/strips.vert"),
            include_str!("shaders/strips.frag"),
        )?;
        let mut indices = Vec::with_capacity(CHUNK * 6);
        for quad in 0..CHUNK as u16 {
            indices.extend([0, 1, 2, 2, 1, 3].map(|corner| quad * 4 + corner));
        }
        // SAFETY: the objects are made here by this context; the slice is read before the call
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
                room: 0,
                palette,
                pages: Vec::new(),
                free: FreeChunks::default(),
            }
        };
        made.set_palette(gl, palette);
        Ok(made)
    }

    /// Changes the colors; no tile is touched.
    pub fn set_palette(&self, gl: &glow::Context, palette: &Palette) {
        let entries = palette.entries();
        let mut texels: Vec<Rgba> = Vec::with_capacity(PALETTE_LEN.next_multiple_of(256));
        texels.extend_from_slice(entries);
        // The last row is the gray throughout, so that the shader need not care about the low bits
        // of the word.
        texels.resize(PALETTE_LEN.next_multiple_of(256), entries[PALETTE_LEN - 1]);
        // SAFETY: the texture is this context's and exactly as large as `texels`.
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

    /// Sends a tile to the GPU.
    ///
    /// # Errors
    /// When the driver has no memory for another page.
    pub fn upload(
        &mut self,
        gl: &glow::Context,
        strips: StripColumns<'_>,
    ) -> Result<GpuTile, GlError> {
        let wanted = strips.len().div_ceil(CHUNK);
        while self.pages.len() < self.free.pages_for(wanted) as usize {
            let positions = texture(gl, glow::RGBA32F, CHUNK as i32, PAGE as i32)?;
            let colors = texture(gl, glow::R32UI, CHUNK as i32, PAGE as i32)?;
            let blocks = texture(gl, glow::R32UI, CHUNK as i32, PAGE as i32)?;
            self.pages.push(Page { positions, colors, blocks, many: Vec::new(), few: Vec::new() });
            self.free.add_page();
        }
        let chunks = self.free.take(wanted);
        let mut from = 0;
        for (first, rows) in runs(&chunks) {
            let page = &self.pages[(first / PAGE) as usize];
            let row = first % PAGE;
            let to = (from + rows as usize * CHUNK).min(strips.len());
            let positions: &[u8] = bytemuck::cast_slice(&strips.positions()[from..to]);
            write(gl, page.positions, (glow::RGBA, glow::FLOAT, 16), row, positions);
            let words = (glow::RED_INTEGER, glow::UNSIGNED_INT, 4);
            write(gl, page.colors, words, row, bytemuck::cast_slice(&strips.colors()[from..to]));
            write(gl, page.blocks, words, row, bytemuck::cast_slice(&strips.blocks()[from..to]));
            from = to;
        }
        Ok(GpuTile { chunks, strips: strips.len() as u32 })
    }

    /// Gives a tile's place in the textures to others.
    pub fn release(&mut self, tile: GpuTile) {
        self.free.give(tile.chunks);
    }

    /// Puts a tile into the frame. What lies outside the placement's clip is cut off.
    pub fn place(&mut self, tile: &GpuTile, placement: Placement) {
        if placement.clip().is_empty() {
            return;
        }
        let mut left = tile.strips;
        for &chunk in &tile.chunks {
            let count = left.min(CHUNK as u32);
            left -= count;
            let page = &mut self.pages[(chunk / PAGE) as usize];
            let instance = Instance { placement, row: chunk % PAGE, count };
            if count > FEW { page.many.push(instance) } else { page.few.push(instance) }
        }
    }

    /// Draws what was placed since the last draw, on a canvas of this many device pixels.
    pub fn draw(
        &mut self,
        gl: &glow::Context,
        canvas: [u32; 2],
        style: &StripStyle,
        counters: &mut Counters,
    ) {
        let total: usize = self.pages.iter().map(|page| page.many.len() + page.few.len()).sum();
        if total == 0 {
            return;
        }
        // SAFETY: the objects are this context's; the instance buffer is made large enough before
        // it is filled and read.
        unsafe {
            gl.use_program(Some(self.program));
            self.set_uniforms(gl, canvas, style);
            gl.bind_vertex_array(Some(self.vao));
            gl.bind_buffer(glow::ARRAY_BUFFER, Some(self.instances));
            // New storage for every frame, so that the driver need not wait for the last frame to
            // have been drawn.
            self.room = self.room.max(total.next_power_of_two());
            gl.buffer_data_size(
                glow::ARRAY_BUFFER,
                (self.room * size_of::<Instance>()) as i32,
                glow::STREAM_DRAW,
            );
            bind(gl, 3, self.palette);
            let mut from = 0;
            for page in &mut self.pages {
                if page.many.is_empty() && page.few.is_empty() {
                    continue;
                }
                bind(gl, 0, page.positions);
                bind(gl, 1, page.colors);
                bind(gl, 2, page.blocks);
                for (instances, quads) in
                    [(&mut page.many, CHUNK as i32), (&mut page.few, FEW as i32)]
                {
                    if instances.is_empty() {
                        continue;
                    }
                    let offset = (from * size_of::<Instance>()) as i32;
                    gl.buffer_sub_data_u8_slice(
                        glow::ARRAY_BUFFER,
                        offset,
                        bytemuck::cast_slice(instances),
                    );
                    point(gl, offset);
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
    /// The program is in use and this context's.
    unsafe fn set_uniforms(&self, gl: &glow::Context, canvas: [u32; 2], style: &StripStyle) {
        let at = &self.uniforms;
        let [accent, lift, ground] = [style.accent, style.lift, style.ground].map(program::rgb);
        // Beyond any canvas: no end is in sight.
        let [first, last] = style.ends.unwrap_or([-1e9, 1e9]);
        // SAFETY: as the caller says.
        unsafe {
            gl.uniform_2_f32(at.canvas.as_ref(), canvas[0] as f32, canvas[1] as f32);
            // Block numbers are below MERGED, so all ones is none of them and no merged strip
            // either.
            gl.uniform_1_u32(at.selected.as_ref(), style.selected.unwrap_or(u32::MAX));
            gl.uniform_1_u32(at.hovered.as_ref(), style.hovered.unwrap_or(u32::MAX));
            gl.uniform_2_f32(at.ends.as_ref(), first, last);
            gl.uniform_1_f32(at.line.as_ref(), style.line);
            gl.uniform_3_f32(at.accent.as_ref(), accent[0], accent[1], accent[2]);
            gl.uniform_3_f32(at.lift.as_ref(), lift[0], lift[1], lift[2]);
            gl.uniform_3_f32(at.ground.as_ref(), ground[0], ground[1], ground[2]);
        }
    }

    /// Gives the GL objects back.
    pub fn destroy(self, gl: &glow::Context) {
        // SAFETY: the objects are this context's, and `self` is gone afterwards.
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

/// A texture that is only ever fetched from: no mipmaps, no filter (which 32-bit floats would not
/// have).
fn texture(
    gl: &glow::Context,
    format: u32,
    width: i32,
    height: i32,
) -> Result<glow::Texture, GlError> {
    // SAFETY: no pointers; the texture is made here.
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

/// Fills rows of a column texture from `row` on; `bytes` need not fill the last. The format is that
/// of the data: layout, type and bytes a texel.
fn write(
    gl: &glow::Context,
    texture: glow::Texture,
    format: (u32, u32, usize),
    row: u32,
    bytes: &[u8],
) {
    let (layout, kind, texel) = format;
    let whole = bytes.len() / (CHUNK * texel);
    let (full, rest) = bytes.split_at(whole * CHUNK * texel);
    let parts = [
        (row as i32, CHUNK, whole, full),
        (row as i32 + whole as i32, rest.len() / texel, 1, rest),
    ];
    for (y, width, height, part) in parts {
        if part.is_empty() {
            continue;
        }
        let pixels = glow::PixelUnpackData::Slice(Some(part));
        // SAFETY: `part` has width x height texels of this format, aligned to 4 bytes as the
        // default unpacking wants.
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
/// The texture is this context's.
unsafe fn bind(gl: &glow::Context, unit: u32, texture: glow::Texture) {
    // SAFETY: as the caller says.
    unsafe {
        gl.active_texture(glow::TEXTURE0 + unit);
        gl.bind_texture(glow::TEXTURE_2D, Some(texture));
    }
}

/// Points the vertex attributes at the instances from this byte of the bound buffer on: there is no
/// first instance to give to a draw call in OpenGL ES 3.0.
///
/// # Safety
/// The vertex array and the instance buffer are bound.
unsafe fn point(gl: &glow::Context, offset: i32) {
    let stride = size_of::<Instance>() as i32;
    // SAFETY: the offsets are those of `Instance`, whose size is asserted above.
    unsafe {
        gl.vertex_attrib_pointer_f32(0, 4, glow::FLOAT, false, stride, offset);
        gl.vertex_attrib_pointer_f32(1, 2, glow::FLOAT, false, stride, offset + 16);
        gl.vertex_attrib_pointer_f32(2, 4, glow::FLOAT, false, stride, offset + 24);
        gl.vertex_attrib_pointer_i32(3, 2, glow::UNSIGNED_INT, stride, offset + 40);
    }
}
