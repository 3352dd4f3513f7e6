//! Shaders from source to a linked program.

use glow::HasContext as _;
use thiserror::Error;

/// Why the drawing could not be set up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GlError {
    /// The driver does not compile a shader of ours.
    #[error("the {stage} shader of `{program}` does not compile on this driver: {log}")]
    Compile {
        /// Which program.
        program: &'static str,
        /// `vertex` or `fragment`.
        stage: &'static str,
        /// What the driver says.
        log: String,
    },
    /// The driver does not link a program of ours.
    #[error("the program `{program}` does not link on this driver: {log}")]
    Link {
        /// Which program.
        program: &'static str,
        /// What the driver says.
        log: String,
    },
    /// The driver makes no more objects: out of memory, or the context is lost.
    #[error("the driver makes no {what}: {log}")]
    Object {
        /// `buffer`, `texture` ...
        what: &'static str,
        /// What the driver says.
        log: String,
    },
}

impl GlError {
    pub(super) fn object(what: &'static str) -> impl FnOnce(String) -> Self {
        move |log| Self::Object { what, log }
    }
}

/// Compiles and links; the shaders are given back either way.
pub(super) fn link(
    gl: &glow::Context,
    name: &'static str,
    vertex: &str,
    fragment: &str,
) -> Result<glow::Program, GlError> {
    // SAFETY: the objects are made by this context here, and used by nothing else until they are
    // returned.
    unsafe {
        let program = gl.create_program().map_err(GlError::object("program"))?;
        let stages = [
            (glow::VERTEX_SHADER, "vertex", vertex),
            (glow::FRAGMENT_SHADER, "fragment", fragment),
        ];
        let mut shaders = Vec::with_capacity(stages.len());
        let mut result = Ok(());
        for (kind, stage, source) in stages {
            match gl.create_shader(kind) {
                Ok(shader) => {
                    gl.shader_source(shader, source);
                    gl.compile_shader(shader);
                    gl.attach_shader(program, shader);
                    shaders.push((shader, stage));
                }
                Err(log) => result = Err(GlError::Object { what: "shader", log }),
            }
        }
        if result.is_ok() {
            gl.link_program(program);
            // The logs are asked for only after a failed link: asking makes the browser wait for
            // the compiler.
            if !gl.get_program_link_status(program) {
                result = Err(shaders
                    .iter()
                    .find(|(shader, _)| !gl.get_shader_compile_status(*shader))
                    .map_or_else(
                        || GlError::Link { program: name, log: gl.get_program_info_log(program) },
                        |&(shader, stage)| GlError::Compile {
                            program: name,
                            stage,
                            log: gl.get_shader_info_log(shader),
                        },
                    ));
            }
        }
        for (shader, _) in shaders {
            gl.detach_shader(program, shader);
            gl.delete_shader(shader);
        }
        match result {
            Ok(()) => Ok(program),
            Err(error) => {
                gl.delete_program(program);
                Err(error)
            }
        }
    }
}

/// A color as a shader takes it.
pub(super) fn rgb(color: crate::Rgba) -> [f32; 3] {
    [color[0], color[1], color[2]].map(|v| f32::from(v) / 255.0)
}
