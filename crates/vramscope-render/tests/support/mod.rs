//! An OpenGL ES 3 context without a window, and pictures of what is drawn in it.
#![expect(unsafe_code, reason = "EGL and glow are foreign functions")]

use std::fs;
use std::io::BufWriter;
use std::path::Path;

use glow::HasContext as _;
use khronos_egl as egl;

/// What Debian and Ubuntu call the libraries.
const PACKAGES: &str = "libegl1 libegl-mesa0 libgl1-mesa-dri libgles2";
const PLATFORM_SURFACELESS_MESA: egl::Enum = 0x31DD;

/// A context and a framebuffer of a fixed size.
pub(crate) struct Canvas {
    pub(crate) gl: glow::Context,
    pub(crate) size: [u32; 2],
    instance: egl::DynamicInstance<egl::EGL1_5>,
    display: egl::Display,
    context: egl::Context,
}

impl Canvas {
    /// Panics with what to install when the machine has no EGL: a picture that is not compared is
    /// not a passed test.
    pub(crate) fn new(width: u32, height: u32) -> Self {
        Self::try_new(width, height).unwrap_or_else(|why| {
            panic!("no OpenGL ES 3 through EGL ({why}); apt-get install {PACKAGES}")
        })
    }

    fn try_new(width: u32, height: u32) -> Result<Self, String> {
        // SAFETY: the library is the system's EGL; its initializers are what loading it runs.
        let instance = unsafe {
            egl::DynamicInstance::<egl::EGL1_5>::load_required_from_filename("libEGL.so.1")
        }
        .map_err(|e| e.to_string())?;
        // SAFETY: the default display is the one native display that this platform takes.
        let display = unsafe {
            instance.get_platform_display(
                PLATFORM_SURFACELESS_MESA,
                egl::DEFAULT_DISPLAY,
                &[egl::ATTRIB_NONE],
            )
        }
        .map_err(|e| e.to_string())?;
        instance.initialize(display).map_err(|e| e.to_string())?;
        instance.bind_api(egl::OPENGL_ES_API).map_err(|e| e.to_string())?;
        let wanted = [egl::SURFACE_TYPE, 0, egl::RENDERABLE_TYPE, egl::OPENGL_ES3_BIT, egl::NONE];
        let config = instance
            .choose_first_config(display, &wanted)
            .map_err(|e| e.to_string())?
            .ok_or("no configuration for OpenGL ES 3")?;
        let version = [egl::CONTEXT_MAJOR_VERSION, 3, egl::CONTEXT_MINOR_VERSION, 0, egl::NONE];
        let context =
            instance.create_context(display, config, None, &version).map_err(|e| e.to_string())?;
        instance.make_current(display, None, None, Some(context)).map_err(|e| e.to_string())?;
        // SAFETY: the context is current on this thread, where all that follows happens; the
        // framebuffer is complete before it is used, and stays bound.
        let gl = unsafe {
            let gl = glow::Context::from_loader_function(|name| {
                instance.get_proc_address(name).map_or(std::ptr::null(), |f| f as *const _)
            });
            let color = gl.create_renderbuffer()?;
            gl.bind_renderbuffer(glow::RENDERBUFFER, Some(color));
            gl.renderbuffer_storage(glow::RENDERBUFFER, glow::RGBA8, width as i32, height as i32);
            let framebuffer = gl.create_framebuffer()?;
            gl.bind_framebuffer(glow::FRAMEBUFFER, Some(framebuffer));
            gl.framebuffer_renderbuffer(
                glow::FRAMEBUFFER,
                glow::COLOR_ATTACHMENT0,
                glow::RENDERBUFFER,
                Some(color),
            );
            if gl.check_framebuffer_status(glow::FRAMEBUFFER) != glow::FRAMEBUFFER_COMPLETE {
                return Err("no complete framebuffer".to_owned());
            }
            gl
        };
        Ok(Self { gl, size: [width, height], instance, display, context })
    }

    /// What has been drawn. Panics on a GL error, which would otherwise only be a wrong picture.
    pub(crate) fn read(&self) -> Picture {
        let [width, height] = self.size;
        let mut pixels = vec![0; (width * height * 4) as usize];
        // SAFETY: the buffer has room for width x height texels of 4 bytes.
        let error = unsafe {
            let into = glow::PixelPackData::Slice(Some(&mut pixels));
            self.gl.read_pixels(
                0,
                0,
                width as i32,
                height as i32,
                glow::RGBA,
                glow::UNSIGNED_BYTE,
                into,
            );
            self.gl.get_error()
        };
        assert_eq!(error, glow::NO_ERROR, "OpenGL says {error:#x}");
        Picture { width, height, pixels }
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        // Nothing is left to do when this fails: the process ends soon.
        let _ = self.instance.destroy_context(self.display, self.context);
    }
}

/// Pixels, lowest row first as OpenGL has them.
pub(crate) struct Picture {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Picture {
    /// The pixel at `x` from the left and `y` from the bottom.
    pub(crate) fn at(&self, x: u32, y: u32) -> [u8; 4] {
        let i = ((y * self.width + x) * 4) as usize;
        [self.pixels[i], self.pixels[i + 1], self.pixels[i + 2], self.pixels[i + 3]]
    }

    /// Writes a PNG, top row first.
    pub(crate) fn save(&self, path: &Path) {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).expect("a folder for the picture");
        }
        let mut encoder = png::Encoder::new(
            BufWriter::new(fs::File::create(path).expect("a file for the picture")),
            self.width,
            self.height,
        );
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        let rows: Vec<u8> =
            self.pixels.chunks_exact(self.width as usize * 4).rev().flatten().copied().collect();
        let mut writer = encoder.write_header().expect("a PNG header");
        writer.write_image_data(&rows).expect("PNG rows");
    }

    fn load(path: &Path) -> Self {
        let file = fs::File::open(path).unwrap_or_else(|e| {
            panic!("{}: {e}; UPDATE_GOLDENS=1 makes the picture", path.display())
        });
        let mut reader =
            png::Decoder::new(std::io::BufReader::new(file)).read_info().expect("a PNG");
        let mut rows = vec![0; reader.output_buffer_size().expect("a PNG of sane size")];
        let info = reader.next_frame(&mut rows).expect("PNG rows");
        let pixels = rows.chunks_exact(info.width as usize * 4).rev().flatten().copied().collect();
        Self { width: info.width, height: info.height, pixels }
    }

    /// Compares with a committed picture. Another version of the rasteriser may put a handful of
    /// pixels elsewhere, and round a mixed color otherwise; anything more is a change. The new
    /// picture is left beside the build's output.
    pub(crate) fn check(&self, golden: &Path) {
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            self.save(golden);
            return;
        }
        let before = Self::load(golden);
        assert_eq!(
            (self.width, self.height),
            (before.width, before.height),
            "{}",
            golden.display()
        );
        let far = |(a, b): (&u8, &u8)| a.abs_diff(*b) > 2;
        let differ = self
            .pixels
            .chunks_exact(4)
            .zip(before.pixels.chunks_exact(4))
            .filter(|(a, b)| a.iter().zip(*b).any(far))
            .count();
        let allowed = (self.width * self.height) as usize / 10_000;
        if differ > allowed {
            let name = golden.file_name().unwrap_or_default();
            let seen = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
            self.save(&seen);
            panic!(
                "{differ} pixels differ from {} ({allowed} may): see {}; UPDATE_GOLDENS=1 accepts the new picture",
                golden.display(),
                seen.display()
            );
        }
    }
}
