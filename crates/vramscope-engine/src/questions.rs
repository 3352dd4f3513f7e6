//! What the views ask: answers in slices, and in turns.
//!
//! A question that is done in a few slices is answered before tiles, but for those of the first
//! picture. One that takes longer goes on behind them, and one that is known to be long begins
//! there. Nothing in here looks at a clock.

use crate::engine::{SLICE, Slice};
use crate::file::File;
use crate::making::Making;
use crate::protocol::views::{Answer, Query};
use crate::protocol::{DeviceRef, Failure, Response};
use crate::views::{self, Views};
use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::Arc;
use vramscope_analysis::slicing::{Budget, SlicedTask};

/// So many slices of a question come before tiles.
const BEFORE_TILES: u32 = 8;

/// A question that waits, and what there is of its answer.
struct Question {
    id: u32,
    target: DeviceRef,
    query: Query,
    /// Of what is not kept between answers.
    answer: SlicedTask<Option<Answer>>,
    slices: u32,
}

/// All that wait.
#[derive(Default)]
pub(crate) struct Questions {
    before_tiles: VecDeque<Question>,
    /// Those that are known to be long are last.
    behind: VecDeque<Question>,
}

impl Questions {
    /// A newer question of a kind may make older ones pointless: what there is of their answers is
    /// dropped.
    pub(crate) fn post(&mut self, id: u32, target: DeviceRef, query: Query) {
        if query.replaces() {
            let kind = discriminant(&query);
            for queue in [&mut self.before_tiles, &mut self.behind] {
                queue.retain(|waiting| discriminant(&waiting.query) != kind);
            }
        }
        let queue = if query.is_long() { &mut self.behind } else { &mut self.before_tiles };
        queue.push_back(Question { id, target, query, answer: SlicedTask::default(), slices: 0 });
    }

    /// A slice of one that comes before tiles, each in its turn; `None` when there is none.
    pub(crate) fn before_tiles(
        &mut self,
        file: Option<&Arc<File>>,
        making: &mut Making,
        views: &mut Views,
    ) -> Option<Slice> {
        let mut question = self.before_tiles.pop_front()?;
        let slice = question.slice(file, making, views);
        if let Slice::Working = slice {
            question.slices += 1;
            if question.slices < BEFORE_TILES {
                self.before_tiles.push_back(question);
            } else {
                let first_long = self.behind.iter().position(|waiting| waiting.query.is_long());
                self.behind.insert(first_long.unwrap_or(self.behind.len()), question);
            }
        }
        Some(slice)
    }

    /// A slice of the first of the others.
    pub(crate) fn behind(
        &mut self,
        file: Option<&Arc<File>>,
        making: &mut Making,
        views: &mut Views,
    ) -> Option<Slice> {
        let slice = self.behind.front_mut()?.slice(file, making, views);
        if !matches!(slice, Slice::Working) {
            self.behind.pop_front();
        }
        Some(slice)
    }
}

impl Question {
    fn slice(&mut self, file: Option<&Arc<File>>, making: &mut Making, views: &mut Views) -> Slice {
        let failed = |message: &str| {
            let failure = Failure { id: Some(self.id), message: message.to_owned(), hint: None };
            Slice::answer(Response::Failed(failure))
        };
        let Some(file) = file else { return failed("the file is not loaded") };
        let (target, query) = (self.target, &self.query);
        if !making.is_ready(file, target, query.needs()) || !views.is_ready(file, target, query) {
            return Slice::Working;
        }
        let answer = views.kept(file, target, query).or_else(|| {
            self.answer
                .advance(|| views::answer(file.clone(), target, query.clone(), Budget::of(SLICE)));
            self.answer.done_mut().map(Option::take)
        });
        match answer {
            Some(Some(answer)) => Slice::answer(Response::View { id: self.id, answer }),
            Some(None) => failed("there is no such device"),
            None => Slice::Working,
        }
    }
}
