//! The rest of the class: ranges, limits, rows, boxes, and conversions of positions.

use js_sys::Float64Array;
use wasm_bindgen::prelude::*;

use super::TimelineView;
use crate::tile::Area;

#[wasm_bindgen]
impl TimelineView {
    /// Sets the minimum upper edge of the whole view in bytes. Tiles are requested up to this
    /// height. Without a number the edge is reset to the peak.
    #[wasm_bindgen(js_name = setTop)]
    pub fn set_top(&mut self, bytes: Option<f64>) {
        self.scene.set_top(bytes);
    }

    /// Sets the lower edge of the whole view in bytes, which is 0 by default. Panning can reach
    /// lower heights.
    #[wasm_bindgen(js_name = setBase)]
    pub fn set_base(&mut self, bytes: f64) {
        self.scene.set_base(bytes);
    }

    /// Draws a line at the device's capacity. Without a number the line is removed.
    #[wasm_bindgen(js_name = setCapacity)]
    pub fn set_capacity(&mut self, bytes: Option<f64>) {
        self.scene.set_capacity(bytes);
    }

    /// Sets the ranges of slots that have another ground: one array with the two edges of each.
    #[wasm_bindgen(js_name = setShaded)]
    pub fn set_shaded(&mut self, ranges: &[f64]) {
        self.scene.set_shaded(ranges);
    }

    /// Sets the parts of the time axis that take less room: one array with the first and the last
    /// slot and the microseconds of each. Opening a plot clears them.
    #[wasm_bindgen(js_name = setBreaks)]
    pub fn set_breaks(&mut self, breaks: &[f64]) {
        self.scene.set_breaks(breaks);
        self.labels = None;
    }

    /// Replaces the rows by rows of `units` in total. The view keeps its distance from the first
    /// row. If the row from `low` to `high` is then completely out of view, it is moved to the
    /// center.
    #[wasm_bindgen(js_name = setRows)]
    pub fn set_rows(&mut self, units: f64, low: Option<f64>, high: Option<f64>) {
        self.scene.set_rows(units, low.zip(high).map(|(low, high)| [low, high]));
    }

    /// Shows the nearest allowed range of slots without animation. The heights do not change.
    /// Infinite and NaN numbers are ignored.
    #[wasm_bindgen(js_name = setRange)]
    pub fn set_range(&mut self, x0: f64, x1: f64) {
        self.scene.set_range(x0, x1);
    }

    /// The range of slots that is visible now, also during a jump. Linked plots must show the same
    /// range.
    #[wasm_bindgen(js_name = getRange)]
    pub fn get_range(&self) -> Vec<f64> {
        let Area { x0, x1, .. } = *self.scene.view();
        vec![x0, x1]
    }

    /// The lit blocks with space for a label of `width` by `height` CSS pixels, largest first, at
    /// most `limit`. One array with `[block, x0, x1, y0, y1, color word]` for each.
    #[wasm_bindgen(js_name = roomy)]
    pub fn labelable_blocks(&self, width: f64, height: f64, limit: usize) -> Vec<f64> {
        self.scene.labelable_blocks(width, height, limit)
    }

    /// Sets the boxes that are laid over the plot: one array with `[x0, x1, y0, y1]` for each, in
    /// slots and bytes (or units of rows). A height of NaN means the edge of the plot. All numbers
    /// may be infinite.
    #[wasm_bindgen(js_name = setBoxes)]
    pub fn set_boxes(&mut self, boxes: Vec<f64>) {
        self.scene.set_boxes(boxes);
        self.boxes = None;
    }

    /// The boxes in view: one array with `[index, left, top, width, height]` for each, in CSS
    /// pixels of the canvas. Returns the previous object while nothing has changed.
    pub fn boxes(&mut self) -> Float64Array {
        let state = self.view_state();
        if let Some((before, boxes)) = &self.boxes
            && *before == state
        {
            return boxes.clone();
        }
        let boxes = Float64Array::from(self.scene.boxes().as_slice());
        self.boxes = Some((state, boxes.clone()));
        boxes
    }

    /// The point of the plot at the nearest CSS position that is in the plot.
    ///
    /// # Errors
    /// Never in practice: a point is two numbers.
    #[wasm_bindgen(unchecked_return_type = "Place")]
    pub fn place(&self, x: f64, y: f64) -> Result<JsValue, JsValue> {
        Ok(serde_wasm_bindgen::to_value(&self.scene.place(x, y))?)
    }

    /// Jumps to an area.
    ///
    /// # Errors
    /// When `area` is not a valid area.
    #[wasm_bindgen(js_name = zoomTo)]
    pub fn zoom_to(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "Area")] area: JsValue,
    ) -> Result<(), JsValue> {
        let area: Area = serde_wasm_bindgen::from_value(area)?;
        self.scene.set_smooth(self.is_smooth());
        self.scene.zoom_to(area);
        Ok(())
    }

    /// Jumps to a box in CSS pixels of the canvas. A side shorter than 8 pixels leaves its axis
    /// unchanged. Returns false when both sides are shorter.
    #[wasm_bindgen(js_name = zoomBox)]
    pub fn zoom_box(&mut self, left: f64, top: f64, right: f64, bottom: f64) -> bool {
        self.scene.set_smooth(self.is_smooth());
        self.scene.zoom_box([left, top], [right, bottom])
    }

    /// Formats the length between two slots, such as `412 events` or `7.90 ms`. Empty for weights.
    #[wasm_bindgen(js_name = measureX)]
    pub fn measure_x(&self, from: f64, to: f64) -> String {
        self.scene.measure_x(from, to)
    }

    /// Formats a number of bytes, such as `412.0 MiB`. Empty for rows.
    #[wasm_bindgen(js_name = measureY)]
    pub fn measure_y(&self, bytes: f64) -> String {
        self.scene.measure_y(bytes)
    }
}
