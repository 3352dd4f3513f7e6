//! The programs, one file a primitive.
//!
//! A renderer owns GL objects and does not own the context: every call takes it, and
//! [`StripRenderer::destroy`] gives the objects back. After a lost context there is nothing to give
//! back; drop the renderer and make another one.
#![expect(
    unsafe_code,
    reason = "every function of glow is unsafe; this module is the only one that calls them"
)]

mod chunks;
mod program;
mod rects;
mod strips;

pub use program::GlError;
pub use rects::{Rect, RectRenderer};
pub use strips::{GpuTile, StripRenderer, StripStyle};

use crate::{PixelRect, Rgba};

/// What was drawn since the last [`Counters::reset`].
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
    /// Starts counting anew.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Makes the whole canvas one color, and confines what follows to nothing in particular.
pub fn clear(gl: &glow::Context, canvas: [u32; 2], color: Rgba) {
    use glow::HasContext as _;
    let [r, g, b, a] = color.map(|v| f32::from(v) / 255.0);
    // SAFETY: no pointers; any context takes these calls.
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

/// Confines drawing to these pixels until the next [`clear`].
pub fn scissor(gl: &glow::Context, to: PixelRect) {
    use glow::HasContext as _;
    let (x, y) = (to.x0 as i32, to.y0 as i32);
    // SAFETY: no pointers; a negative size would be an error, hence max(0).
    unsafe {
        gl.enable(glow::SCISSOR_TEST);
        gl.scissor(x, y, (to.x1 as i32 - x).max(0), (to.y1 as i32 - y).max(0));
    }
}
