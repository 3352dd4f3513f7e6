//! Plain and dashed rectangles: grid lines, the baseline, marks.

use bytemuck::{Pod, Zeroable};
use glow::HasContext as _;

use super::{Counters, GlError, program};
use crate::{PixelRect, Rgba};

/// A rectangle in device pixels.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Rect {
    /// Where.
    pub at: PixelRect,
    /// Its color.
    pub color: Rgba,
    /// Device pixels of a dash and the gap after it, along a thin rectangle; 0 is solid.
    pub dash: f32,
}

// The vertex attributes below are at these offsets.
const _: () = assert!(size_of::<Rect>() == 24);

/// Draws a handful of [`Rect`]s with one call.
#[derive(Debug)]
pub struct RectRenderer {
    program: glow::Program,
    canvas: Option<glow::UniformLocation>,
    vao: glow::VertexArray,
    buffer: glow::Buffer,
    /// Rectangles that the buffer has room for.
    room: usize,
}

impl RectRenderer {
    /// Sets up.
    ///
    /// # Errors
    /// When the driver refuses a shader or an object.
    pub fn new(gl: &glow::Context) -> Result<Self, GlError> {
        let program = program::link(
            gl,
            "rects",
            include_str!("shaders/rects.vert"),
            include_str!("shaders/rects.frag"),
        )?;
        // SAFETY: the objects are made here by this context; the attributes lie inside a `Rect`
        // (asserted above).
        unsafe {
            let canvas = gl.get_uniform_location(program, "u_canvas");
            let vao = gl.create_vertex_array().map_err(GlError::object("vertex array"))?;
            let buffer = gl.create_buffer().map_err(GlError::object("buffer"))?;
            gl.bind_vertex_array(Some(vao));
            gl.bind_buffer(glow::ARRAY_BUFFER, Some(buffer));
            let stride = size_of::<Rect>() as i32;
            gl.vertex_attrib_pointer_f32(0, 4, glow::FLOAT, false, stride, 0);
            gl.vertex_attrib_pointer_f32(1, 4, glow::UNSIGNED_BYTE, true, stride, 16);
            gl.vertex_attrib_pointer_f32(2, 1, glow::FLOAT, false, stride, 20);
            for attribute in 0..3 {
                gl.enable_vertex_attrib_array(attribute);
                gl.vertex_attrib_divisor(attribute, 1);
            }
            gl.bind_vertex_array(None);
            Ok(Self { program, canvas, vao, buffer, room: 0 })
        }
    }

    /// Draws `rects` in their order on a canvas of this many device pixels.
    pub fn draw(
        &mut self,
        gl: &glow::Context,
        canvas: [u32; 2],
        rects: &[Rect],
        counters: &mut Counters,
    ) {
        if rects.is_empty() {
            return;
        }
        // SAFETY: the objects are this context's; the buffer holds at least `rects.len()` instances
        // when they are drawn.
        unsafe {
            gl.use_program(Some(self.program));
            gl.uniform_2_f32(self.canvas.as_ref(), canvas[0] as f32, canvas[1] as f32);
            gl.bind_vertex_array(Some(self.vao));
            gl.bind_buffer(glow::ARRAY_BUFFER, Some(self.buffer));
            if rects.len() > self.room {
                self.room = rects.len().next_power_of_two();
                gl.buffer_data_size(
                    glow::ARRAY_BUFFER,
                    (self.room * size_of::<Rect>()) as i32,
                    glow::DYNAMIC_DRAW,
                );
            }
            gl.buffer_sub_data_u8_slice(glow::ARRAY_BUFFER, 0, bytemuck::cast_slice(rects));
            gl.draw_arrays_instanced(glow::TRIANGLE_STRIP, 0, 4, rects.len() as i32);
            gl.bind_vertex_array(None);
        }
        counters.draws += 1;
        counters.instances += rects.len() as u32;
    }

    /// Gives the GL objects back.
    pub fn destroy(self, gl: &glow::Context) {
        // SAFETY: the objects are this context's, and `self` is gone afterwards.
        unsafe {
            gl.delete_program(self.program);
            gl.delete_vertex_array(self.vao);
            gl.delete_buffer(self.buffer);
        }
    }
}
