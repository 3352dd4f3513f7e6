//! Draws solid and dashed rectangles: grid lines, the baseline and marks.

use bytemuck::{Pod, Zeroable};
use glow::HasContext as _;

use super::{Counters, GlError, program};
use crate::{PixelRect, Rgba};

/// A rectangle in device pixels.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Rect {
    /// Position.
    pub at: PixelRect,
    /// Fill color.
    pub color: Rgba,
    /// Length of a dash with the gap after it, in device pixels along a thin rectangle. 0 is solid.
    pub dash: f32,
}

// `RectRenderer::new` hardcodes the offsets of the fields as vertex attributes.
const _: () = assert!(size_of::<Rect>() == 24);

/// Draws a few [`Rect`]s with one draw call.
#[derive(Debug)]
pub struct RectRenderer {
    program: glow::Program,
    canvas: Option<glow::UniformLocation>,
    vao: glow::VertexArray,
    buffer: glow::Buffer,
    /// Capacity of the buffer in rectangles.
    capacity: usize,
}

impl RectRenderer {
    /// Creates the program and its buffers.
    ///
    /// # Errors
    /// When the driver rejects a shader or cannot create an object.
    pub fn new(gl: &glow::Context) -> Result<Self, GlError> {
        let program = program::link(
            gl,
            "rects",
            include_str!("shaders/rects.vert"),
            include_str!("shaders/rects.frag"),
        )?;
        // SAFETY: this context creates the objects here. The attributes lie inside a `Rect`, whose
        // size is asserted above.
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
            Ok(Self { program, canvas, vao, buffer, capacity: 0 })
        }
    }

    /// Draws `rects` in order. `canvas` is the size of the canvas in device pixels.
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
        // SAFETY: the objects belong to this context. The buffer holds at least `rects.len()`
        // instances when they are drawn.
        unsafe {
            gl.use_program(Some(self.program));
            gl.uniform_2_f32(self.canvas.as_ref(), canvas[0] as f32, canvas[1] as f32);
            gl.bind_vertex_array(Some(self.vao));
            gl.bind_buffer(glow::ARRAY_BUFFER, Some(self.buffer));
            if rects.len() > self.capacity {
                self.capacity = rects.len().next_power_of_two();
                gl.buffer_data_size(
                    glow::ARRAY_BUFFER,
                    (self.capacity * size_of::<Rect>()) as i32,
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

    /// Deletes the GL objects.
    pub fn destroy(self, gl: &glow::Context) {
        // SAFETY: the objects belong to this context, and `self` is consumed.
        unsafe {
            gl.delete_program(self.program);
            gl.delete_vertex_array(self.vao);
            gl.delete_buffer(self.buffer);
        }
    }
}
