//! The rest of the class: what is laid over a plot, and what is set on it from elsewhere.

use js_sys::Float64Array;
use wasm_bindgen::prelude::*;

use super::TimelineView;
use crate::tile::Area;

#[wasm_bindgen]
impl TimelineView {
    /// The whole view reaches at least this high, and tiles are wanted up to there; without a
    /// number: up to the peak.
    #[wasm_bindgen(js_name = setTop)]
    pub fn set_top(&mut self, bytes: Option<f64>) {
        self.scene.set_top(bytes);
    }

    /// The whole view begins at this height (0 at first); what is below can be panned to.
    #[wasm_bindgen(js_name = setBase)]
    pub fn set_base(&mut self, bytes: f64) {
        self.scene.set_base(bytes);
    }

    /// Draws a line at the most that there can be; without a number none.
    #[wasm_bindgen(js_name = setCapacity)]
    pub fn set_capacity(&mut self, bytes: Option<f64>) {
        self.scene.set_capacity(bytes);
    }

    /// There are other rows, so many units high together. What is in view stays as far from the
    /// first one as it was; unless the row from `low` to `high` is then not in view: it comes to
    /// the middle.
    #[wasm_bindgen(js_name = setRows)]
    pub fn set_rows(&mut self, units: f64, low: Option<f64>, high: Option<f64>) {
        self.scene.set_rows(units, low.zip(high).map(|(low, high)| [low, high]));
    }

    /// Shows these slots at once, or the nearest that are allowed; heights stay. Numbers that are
    /// none change nothing.
    #[wasm_bindgen(js_name = setRange)]
    pub fn set_range(&mut self, x0: f64, x1: f64) {
        self.scene.set_range(x0, x1);
    }

    /// The slots from and to which the plot shows right now, also during a jump: what another plot
    /// must show beside it.
    #[wasm_bindgen(js_name = getRange)]
    pub fn get_range(&self) -> Vec<f64> {
        let Area { x0, x1, .. } = *self.scene.view();
        vec![x0, x1]
    }

    /// Blocks that have room for words of so many CSS pixels: `[block, x0, x1, y0, y1]` of each in
    /// one array, the largest first, at most `most`.
    pub fn roomy(&self, width: f64, height: f64, most: usize) -> Vec<f64> {
        self.scene.roomy(width, height, most)
    }

    /// What is laid over the plot: `[x0, x1, y0, y1]` of each box in one array, in slots and bytes
    /// (or units of rows). A height that is NaN is the plot's edge; all may be infinite.
    #[wasm_bindgen(js_name = setBoxes)]
    pub fn set_boxes(&mut self, boxes: Vec<f64>) {
        self.scene.set_boxes(boxes);
        self.boxes = None;
    }

    /// Where those boxes are that are in view: `[index, left, top, width, height]` of each in one
    /// array, in CSS pixels of the canvas. The same object as before while nothing has changed.
    pub fn boxes(&mut self) -> Float64Array {
        let of = self.labels_of();
        if let Some((before, boxes)) = &self.boxes
            && *before == of
        {
            return boxes.clone();
        }
        let boxes = Float64Array::from(self.scene.boxes().as_slice());
        self.boxes = Some((of, boxes.clone()));
        boxes
    }

    /// The place at a CSS position of the canvas, or at the nearest one in the plot.
    ///
    /// # Errors
    /// Never, in practice: a place is two numbers.
    #[wasm_bindgen(unchecked_return_type = "Place")]
    pub fn place(&self, x: f64, y: f64) -> Result<JsValue, JsValue> {
        Ok(serde_wasm_bindgen::to_value(&self.scene.place(x, y))?)
    }

    /// Jumps to an area.
    ///
    /// # Errors
    /// When `area` is no area.
    #[wasm_bindgen(js_name = zoomTo)]
    pub fn zoom_to(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "Area")] area: JsValue,
    ) -> Result<(), JsValue> {
        let area: Area = serde_wasm_bindgen::from_value(area)?;
        self.scene.set_smooth(self.smooth());
        self.scene.zoom_to(area);
        Ok(())
    }

    /// Jumps to what is in a box of CSS pixels of the canvas. Of a box that is less than 8 wide or
    /// high only the other side counts; false when neither does.
    #[wasm_bindgen(js_name = zoomBox)]
    pub fn zoom_box(&mut self, left: f64, top: f64, right: f64, bottom: f64) -> bool {
        self.scene.set_smooth(self.smooth());
        self.scene.zoom_box([left, top], [right, bottom])
    }

    /// So many slots in words: `412 events`, `7.90 ms`; nothing for a weight.
    #[wasm_bindgen(js_name = measureX)]
    pub fn measure_x(&self, slots: f64) -> String {
        self.scene.measure_x(slots)
    }

    /// So many bytes in words: `412.0 MiB`; nothing for rows.
    #[wasm_bindgen(js_name = measureY)]
    pub fn measure_y(&self, bytes: f64) -> String {
        self.scene.measure_y(bytes)
    }
}
