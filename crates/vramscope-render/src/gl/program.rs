//! Compiles and links shader programs.

use glow::HasContext as _;
use thiserror::Error;

/// A failure to set up OpenGL objects.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GlError {
    /// The driver rejects a shader.
    #[error("Cannot compile the {stage} shader of `{program}` on this graphics driver: {log}")]
    Compile {
        /// Name of the program.
        program: &'static str,
        /// `vertex` or `fragment`.
        stage: &'static str,
        /// Log of the driver.
        log: String,
    },
    /// The driver fails to link a program.
    #[error("Cannot link the program `{program}` on this graphics driver: {log}")]
    Link {
        /// Name of the program.
        program: &'static str,
        /// Log of the driver.
        log: String,
    },
    /// The driver cannot create an object: it is out of memory, or the context is lost.
    #[error("Cannot create a {what} on this graphics driver: {log}")]
    Object {
        /// Kind of object, such as `buffer` or `texture`.
        what: &'static str,
        /// Log of the driver.
        log: String,
    },
}

impl GlError {
    pub(super) fn object(what: &'static str) -> impl FnOnce(String) -> Self {
        move |log| Self::Object { what, log }
    }
}

/// Compiles and links a program. The shaders are deleted on success and on failure.
pub(super) fn link(
    gl: &glow::Context,
    name: &'static str,
    vertex: &str,
    fragment: &str,
) -> Result<glow::Program, GlError> {
    // SAFETY: this context creates the objects here, and no other code uses them before the return.
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
            // Status and logs of shaders are read only after a failed link, because reading them
            // makes the browser wait for the compiler.
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

/// Converts a color to floats from 0 to 1, for a shader.
pub(super) fn rgb(color: crate::Rgba) -> [f32; 3] {
    [color[0], color[1], color[2]].map(|v| f32::from(v) / 255.0)
}
