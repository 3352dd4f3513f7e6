//! Shares of a whole, for the page.

use crate::messages::views::CategoryRow;
use vramscope_inference::Category;
use vramscope_layout::Color;
use vramscope_report::Quantity;
pub(super) use vramscope_report::text::category as category_label;
use vramscope_units::Bytes;

/// A category's row, with its fraction of `whole` bytes.
pub(super) fn category_row(category: Category, bytes: u64, whole: u64) -> CategoryRow {
    CategoryRow {
        name: category,
        label: category_label(category).to_owned(),
        bytes: Quantity::bytes(Bytes(bytes)),
        share: fraction(bytes, whole),
        color: Color::category(category as u8).word(),
    }
}

/// `bytes` as a fraction of `whole`, from 0 to 1; 0 if `whole` is 0.
pub(super) fn fraction(bytes: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { bytes as f64 / whole as f64 }
}
