//! The words of findings about ranks. They need no tables of a file.

use super::{Words, subject};
use vramscope_analysis::{Facts, OutlierItem};

/// The words of a finding across ranks.
pub fn rank_words(facts: &Facts) -> Words {
    let Facts::RankSkew { rank, item, bytes, usual, ranks } = facts else {
        return Words::default();
    };
    let (subject, verb) = match item {
        OutlierItem::Stack { site, .. } => (subject(site), "holds"),
        OutlierItem::Category(category) => (format!("Category {}", category.name()), "holds"),
        OutlierItem::Band(name) => ((*name).to_owned(), "peaks at"),
    };
    Words {
        title: format!("{rank} holds {bytes}, the others {usual}"),
        text: format!(
            "{subject} {verb} {bytes} on {rank}. The median of {ranks} similar ranks is {usual}."
        ),
        action: String::new(),
    }
}
