//! Which colour a block has: that of its call site, the same in every rank and after every reload.

use memstrata_analysis::{Sites, Trace};
use memstrata_render::Colour;
use memstrata_snapshot::StackId;

/// A colour word for every block of a trace.
pub struct Colours {
    words: Vec<Colour>,
}

impl Colours {
    /// By call site: the hue from the site, one of four lightness steps from the whole stack.
    pub fn by_site(trace: &Trace, sites: &Sites) -> Self {
        Self { words: trace.blocks.iter().map(|block| site_colour(sites, block.stack)).collect() }
    }

    /// The colour of a block.
    pub fn of(&self, block: u32) -> Colour {
        self.words[block as usize]
    }
}

/// The colour of a stack; grey without one.
pub fn site_colour(sites: &Sites, stack: StackId) -> Colour {
    let site = sites.get(stack);
    match site.frame {
        Some(_) => Colour::new((site.site_hash >> 32) as u8, (site.stack_hash & 3) as u8),
        None => Colour::NO_STACK,
    }
}
