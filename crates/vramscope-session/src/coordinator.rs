//! Requests about a whole run: the order of its files, the overview, the comparison.

use crate::queries::{Compared, Ranks};
use crate::run_order::plan;
use vramscope_protocol::{RunRequest, RunResponse};
use vramscope_report::Quantity;

/// Sees all files of a run; in a browser it has a worker of its own.
#[derive(Debug, Default)]
pub struct Coordinator {
    ranks: Ranks,
    compared: Option<Box<Compared>>,
}

impl Coordinator {
    /// Answer a request.
    pub fn handle(&mut self, request: &RunRequest) -> RunResponse {
        match request {
            RunRequest::Plan { id, files } => {
                let (title, rows) = plan(files);
                let many = if rows.iter().all(|r| r.rank.is_some()) {
                    ("rank", "ranks")
                } else {
                    ("file", "files")
                };
                RunResponse::Planned {
                    id: *id,
                    title,
                    count_text: Quantity::count(rows.len() as u64, many.0, many.1).exact,
                    rows,
                }
            }
            RunRequest::View { id, query } => {
                RunResponse::Overview { id: *id, overview: self.ranks.answer(query) }
            }
            RunRequest::Compare { id, query } => {
                let answer = Compared::answer(&mut self.compared, query);
                RunResponse::Compared { id: *id, answer }
            }
        }
    }
}
