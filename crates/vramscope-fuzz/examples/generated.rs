//! Writes the pickle that an input of the target `reference` stands for, to look at it.

use std::io::{Read as _, Write as _};

fn main() -> std::io::Result<()> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    let generated = vramscope_fuzz::generated_pickle(&input);
    let pickle = generated.unwrap_or_else(|| input.get(1..).unwrap_or_default().to_vec());
    std::io::stdout().write_all(&pickle)
}
