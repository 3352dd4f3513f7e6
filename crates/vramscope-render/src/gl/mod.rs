//! The OpenGL ES programs, one per primitive.
//!
//! A renderer owns GL objects but not the context: every call takes the context as argument.
//! [`StripRenderer::destroy`] deletes the objects. After a lost context they no longer exist, so
//! drop the renderer and create a new one.
#![expect(
    unsafe_code,
    reason = "all functions of glow are unsafe, and only this module calls them"
)]

mod chunks;
mod program;
mod rects;
mod strips;

pub use program::GlError;
pub use rects::{Rect, RectRenderer};
pub use strips::{GpuTile, StripRenderer, StripStyle};

use crate::{PixelRect, Rgba};

/// Counts of draw calls and instances since the last [`Counters::reset`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Draw calls.
    pub draws: u32,
    /// Strips.
    pub strips: u32,
    /// Strips and rectangles.
    pub instances: u32,
}

impl Counters {
    /// Sets all counts to 0.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Fills the whole canvas with one color, and disables the scissor rectangle.
pub fn clear(gl: &glow::Context, canvas: [u32; 2], color: Rgba) {
    use glow::HasContext as _;
    let [r, g, b, a] = color.map(|v| f32::from(v) / 255.0);
    // SAFETY: the calls take no pointers and are valid on any context.
    unsafe {
        gl.viewport(0, 0, canvas[0] as i32, canvas[1] as i32);
        gl.disable(glow::SCISSOR_TEST);
        gl.disable(glow::BLEND);
        gl.disable(glow::DEPTH_TEST);
        gl.disable(glow::DITHER);
        gl.clear_color(r, g, b, a);
        gl.clear(glow::COLOR_BUFFER_BIT);
    }
}

/// Restricts drawing to a rectangle until the next [`clear`].
pub fn scissor(gl: &glow::Context, to: PixelRect) {
    use glow::HasContext as _;
    let (x, y) = (to.x0 as i32, to.y0 as i32);
    // SAFETY: the calls take no pointers. Negative sizes would be errors, hence `max(0)`.
    unsafe {
        gl.enable(glow::SCISSOR_TEST);
        gl.scissor(x, y, (to.x1 as i32 - x).max(0), (to.y1 as i32 - y).max(0));
    }
}
