//! An OpenGL ES 3 context without a window, and images of its content.
#![expect(unsafe_code, reason = "all functions of EGL and glow are unsafe")]

use std::fs;
use std::io::BufWriter;
use std::path::Path;

use glow::HasContext as _;
use khronos_egl as egl;

/// Names of the libraries' packages on Debian and Ubuntu.
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
    /// Panics with the packages to install when the machine has no EGL. The tests are not skipped,
    /// because a skipped comparison would count as passed.
    pub(crate) fn new(width: u32, height: u32) -> Self {
        Self::try_new(width, height).unwrap_or_else(|why| {
            panic!("no OpenGL ES 3 through EGL ({why}); apt-get install {PACKAGES}")
        })
    }

    fn try_new(width: u32, height: u32) -> Result<Self, String> {
        // SAFETY: loading the library runs only the initializers of the system's EGL.
        let instance = unsafe {
            egl::DynamicInstance::<egl::EGL1_5>::load_required_from_filename("libEGL.so.1")
        }
        .map_err(|e| e.to_string())?;
        // SAFETY: this platform accepts the default display as native display.
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
        // SAFETY: the context is current on this thread, and all calls are on this thread. The
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

    /// Reads the pixels. Panics on a GL error, because the image would be wrong.
    pub(crate) fn read(&self) -> Picture {
        let [width, height] = self.size;
        let mut pixels = vec![0; (width * height * 4) as usize];
        // SAFETY: the buffer holds width x height texels of 4 bytes.
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
        assert_eq!(error, glow::NO_ERROR, "OpenGL error {error:#x}");
        Picture { width, height, pixels }
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        // A failure is ignored: the process ends soon.
        let _ = self.instance.destroy_context(self.display, self.context);
    }
}

/// An image. Its rows are stored from the bottom up, like in OpenGL.
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

    /// Writes a PNG file.
    pub(crate) fn save(&self, path: &Path) {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).expect("the folder can be created");
        }
        let mut encoder = png::Encoder::new(
            BufWriter::new(fs::File::create(path).expect("the file can be created")),
            self.width,
            self.height,
        );
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        let rows: Vec<u8> =
            self.pixels.chunks_exact(self.width as usize * 4).rev().flatten().copied().collect();
        let mut writer = encoder.write_header().expect("the PNG header is written");
        writer.write_image_data(&rows).expect("the PNG rows are written");
    }

    fn load(path: &Path) -> Self {
        let file = fs::File::open(path).unwrap_or_else(|e| {
            panic!("{}: {e}. Set UPDATE_GOLDENS=1 to create the image.", path.display())
        });
        let mut reader =
            png::Decoder::new(std::io::BufReader::new(file)).read_info().expect("a PNG file");
        let mut rows = vec![0; reader.output_buffer_size().expect("the PNG fits in memory")];
        let info = reader.next_frame(&mut rows).expect("the PNG has all rows");
        let pixels = rows.chunks_exact(info.width as usize * 4).rev().flatten().copied().collect();
        Self { width: info.width, height: info.height, pixels }
    }

    /// Compares with a committed image.
    ///
    /// Tolerates what another version of the rasterizer may change: color channels that differ by
    /// at most 2, and 0.01 % of the pixels. On failure the new image is saved in the target folder.
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
                "{differ} pixels differ from {}, {allowed} are allowed. See {}. \
                 Set UPDATE_GOLDENS=1 to accept the new image.",
                golden.display(),
                seen.display()
            );
        }
    }
}
