//! The words of growth.

use super::facts::{Growth, GrowthKind};
use crate::category::Phase;
use crate::claims::phrase::Sentence;
use crate::claims::scene::{Claim, Exhibit, Scene, Spot, SpotWhat, Words};
use crate::claims::words::{brief_range, called_from, counted, percent};
use crate::steps::Steps;
use vramscope_trace::NO_STACK;
use vramscope_units::{Bytes, grouped};

/// What to keep in place of a graph.
const KEEP_NO_GRAPH: &str = "Keep loss.item() or output.detach() instead (hidden = \
     hidden.detach() for a carried state), or run it under torch.no_grad().";

impl Claim for Growth {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let mut words = match self.activations {
            _ if !self.are_training() => self.of_requests(scene),
            _ if self.keeps_graphs => self.of_gradients(scene),
            _ if self.kind == GrowthKind::Replaced => self.of_replaced(scene),
            Some(activations) => self.of_graphs(scene, activations),
            None => self.of_tensors(scene),
        };
        if let Some(fix) = scene.predicted.fixes.first() {
            words.text = format!("{} Without it the peak is {} lower.", words.text, fix.lowers);
        }
        words
    }

    fn why(&self, scene: &Scene<'_>) -> String {
        let cause = match self.activations {
            _ if self.kind == GrowthKind::Replaced => "each step makes a larger tensor".to_owned(),
            _ if self.keeps_graphs && self.are_training() => {
                "gradients and their graphs grow together, as with create_graph=True or \
                 retain_graph=True"
                    .to_owned()
            }
            Some((kept, all)) => format!(
                "something holds the loss or an output with its graph: {} % of a step's \
                 activations",
                percent(kept, all)
            ),
            None if self.is_cache => "the keys and values of earlier requests stay".to_owned(),
            None if self.is_model_state => {
                "it is more than one set of gradients or optimizer state of this model".to_owned()
            }
            None if self.is_queue => {
                "more comes than goes, as in a queue without a bound".to_owned()
            }
            None if self.is_data => {
                "it is data that fills a store; a store with a bound, as a replay buffer, stops \
                 growing when it is full"
                    .to_owned()
            }
            None if self.sites > 1 => {
                let sites = counted(self.sites, "call site");
                format!("{sites} grow in the same {}", self.words[1])
            }
            None => "none of it is freed".to_owned(),
        };
        format!("{cause}; {}", self.outlook(scene))
    }

    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        let own = || scene.frame_of(scene.finding.stack()?);
        let called = self.called_from.map(|frame| called_from(&scene.label(frame)));
        let what = match self.kind {
            GrowthKind::Kept if !self.is_queue => {
                format!("{}, none freed", counted(scene.finding.blocks as usize, "block"))
            }
            _ => scene.blocks_text(),
        };
        Some(Spot {
            frame: self.at.filter(|_| self.sites > 1).or_else(own)?,
            note: called.unwrap_or_default(),
            what: SpotWhat::Text(what),
        })
    }

    fn saving(&self, scene: &Scene<'_>) -> Option<Bytes> {
        Some(scene.predicted.fixes.first()?.lowers)
    }

    fn exhibit(&self, scene: &Scene<'_>) -> Exhibit {
        // Passes within a step have no bar of their own.
        if scene.cx.steps.map_or(Steps::TRAINING, Steps::words) != self.words {
            return Exhibit::at_peak(scene);
        }
        // A queue fills in the first step.
        Exhibit::Steps { from: usize::from(self.is_queue) }
    }
}

impl Growth {
    /// `every step`, or `every 3 steps`.
    fn interval(&self) -> String {
        let [word, words] = self.words;
        match self.every {
            1 => format!("every {word}"),
            every => format!("every {every} {words}"),
        }
    }

    /// `8.00 MiB`, or `8.00 MiB to 11.0 MiB`.
    fn amount(&self) -> String {
        let (least, most) = self.per_step;
        if least == most { least.to_string() } else { format!("{least} to {most}") }
    }

    /// The caller, in a sentence; empty if it is not known.
    fn called(&self, scene: &Scene<'_>) -> String {
        let of = |frame| format!(" It is called from {}.", scene.label(frame));
        self.called_from.map(of).unwrap_or_default()
    }

    /// When memory is full, or what many more steps add.
    fn outlook(&self, scene: &Scene<'_>) -> String {
        let [word, words] = self.words;
        if let Some((steps, bytes)) = scene.predicted.full_after {
            let steps = counted(steps as usize, &format!("more {word}"));
            return format!("{bytes} are full after about {steps}");
        }
        format!("{} more {words} add {}", grouped(1000), self.per_1000_steps)
    }

    /// How much stays, and that it stays.
    fn stay(&self) -> String {
        let total = self.total;
        if self.is_queue {
            format!(
                "More comes than goes, as in a queue without a bound: {total} are there in the end."
            )
        } else {
            let words = self.words[1];
            format!("None of it is freed while the {words} last: {total} in the end.")
        }
    }

    /// The subject of a text: the frame that its call stacks share.
    fn place(&self, scene: &Scene<'_>) -> Sentence {
        // One call site speaks for itself, also where its frame is not the program's.
        if let Some(frame) = self.at.filter(|_| self.sites > 1) {
            return scene.frame_noun(frame);
        }
        if let Some(frame) = scene.finding.stack().and_then(|stack| scene.frame_of(stack)) {
            return scene.frame_noun(frame);
        }
        match scene.finding.phase {
            Some(Phase::Backward) => {
                Sentence::new("The ").filter("backward", "phase:backward".to_owned()).text(" pass")
            }
            _ => Sentence::new(format_args!("Memory with {NO_STACK}")),
        }
    }

    /// `train.py:31 step grows by 49.1 MiB every step (12 times)`.
    fn grows(&self, scene: &Scene<'_>) -> String {
        format!(
            "{} grows by {} {} ({} times)",
            self.place(scene).plain(),
            self.amount(),
            self.interval(),
            grouped(self.steps as u64)
        )
    }

    /// Each step replaces a tensor by a larger one.
    fn of_replaced(&self, scene: &Scene<'_>) -> Words {
        let (total, word) = (self.total, self.words[0]);
        Words {
            title: self.title(scene, "Tensor replaced by a larger one"),
            text: format!(
                "{}, {total} in total. Each {word} replaces its tensor by a larger one.{} {}.",
                self.grows(scene),
                self.called(scene),
                self.outlook(scene)
            ),
            action: "Collect the pieces on the CPU (.cpu()), or write them to a tensor of fixed \
                     size. Do not extend a GPU tensor in each step."
                .to_owned(),
        }
    }

    /// Graphs that stay: `kept` of a step's `all` activations.
    fn of_graphs(&self, scene: &Scene<'_>, (kept, all): (Bytes, Bytes)) -> Words {
        let place = self.place(scene).plain();
        let (interval, steps) = (self.interval(), grouped(self.steps as u64));
        let find = if scene.is_held {
            String::new()
        } else {
            format!(
                "Find what keeps a result of {place}: a list, a running sum, an exception, a state \
                 that is carried to the next step. "
            )
        };
        let subject = match self.sites {
            1 => format!("{place} keeps several results of each call, which grow"),
            sites => format!("{} call sites below {place} grow together", grouped(sites as u64)),
        };
        Words {
            title: self.title(scene, "Autograd graphs kept"),
            text: format!(
                "{subject} by {} {interval} ({steps} times). {} {kept} of a step's {all} of \
                 activations stay ({} %), so something holds the loss or an output with its \
                 graph.{} {}.",
                self.amount(),
                self.stay(),
                percent(kept, all),
                self.called(scene),
                self.outlook(scene),
            ),
            action: find + KEEP_NO_GRAPH,
        }
    }

    /// Gradients that stay with the graphs from which they were made.
    fn of_gradients(&self, scene: &Scene<'_>) -> Words {
        let stay = self.stay();
        Words {
            title: self.title(scene, "Gradients kept with their graphs"),
            text: format!(
                "{}. {stay} Gradients and results of forward passes grow in the same steps, so \
                 gradients have graphs: create_graph=True or retain_graph=True. A parameter and \
                 its gradient hold each other then.{} {}.",
                self.grows(scene),
                self.called(scene),
                self.outlook(scene)
            ),
            action: "Set .grad to None after each step (zero_grad(set_to_none=True)), and keep no \
                     gradient without detach(). Use torch.autograd.grad(loss, parameters, \
                     create_graph=True) in place of backward(create_graph=True)."
                .to_owned(),
        }
    }

    /// Tensors that stay.
    fn of_tensors(&self, scene: &Scene<'_>) -> Words {
        let sites = match self.sites {
            0 | 1 => String::new(),
            sites => format!(" {} grow in the same steps.", counted(sites, "call site")),
        };
        let what = if self.is_model_state {
            " It is more than one set of gradients or optimizer state for this model."
        } else if self.is_data {
            " It is data that fills a store. A store with a bound, as a replay buffer, stops \
             growing when it is full."
        } else {
            ""
        };
        let cause = if self.is_queue {
            "Queue fills"
        } else if self.is_data {
            "Store of data fills"
        } else if self.is_model_state {
            "Old gradients or optimizer state kept"
        } else {
            "Leak"
        };
        Words {
            title: self.title(scene, cause),
            text: format!(
                "{}. {}{what}{sites}{} {}.",
                self.grows(scene),
                self.stay(),
                self.called(scene),
                self.outlook(scene)
            ),
            action: self.action(scene).to_owned(),
        }
    }

    /// `Leak at p_gpt.py:31 train_step: +49.1 MiB per step, 12 steps in a row`.
    fn title(&self, scene: &Scene<'_>, cause: &str) -> Sentence {
        let [word, words] = self.words;
        let (least, most) = self.per_step;
        let steps = grouped(self.steps as u64);
        let rate = match self.every {
            1 if self.in_a_row => format!(" per {word}, {steps} {words} in a row"),
            1 => format!(" per {word}, in {steps} {words}"),
            every => format!(" every {every} {words}, {steps} times"),
        };
        Sentence::new(cause)
            .and(scene.at(self.spot(scene).as_ref()))
            .text(": ")
            .event(format_args!("+{}", brief_range(least, most)), scene.first_event())
            .text(rate)
    }

    /// What to do about tensors that stay. Other words name a known holder.
    fn action(&self, scene: &Scene<'_>) -> &'static str {
        match (self.is_model_state, self.is_queue, scene.is_held) {
            _ if self.is_data => {
                "Check the bound of what stores this data: all of it must fit. Else keep it on the \
                 CPU, and move what a step uses to the GPU."
            }
            (true, _, true) => "",
            (true, _, false) => {
                "Find what keeps old gradients or an old optimizer: a list of .grad tensors, a \
                 scheduler or a closure that holds the optimizer."
            }
            (false, true, _) => {
                "Bound the queue (queue.Queue(maxsize=2)), so that its producer waits. Or move \
                 each item to the GPU only when it is used."
            }
            (false, false, true) => {
                "Store its tensors detached on the CPU (.detach().cpu()), or bound it."
            }
            (false, false, false) if self.at_evaluation => {
                "Find what keeps these tensors: a metric without reset(), a list of outputs, a \
                 hook. Clear it when an evaluation ends, or store them on the CPU (.cpu())."
            }
            (false, false, false) => {
                "Find what keeps them: a list, dict, cache or hook. Store \
                 .detach().cpu(), or bound it."
            }
        }
    }

    /// Growth from request to request.
    fn of_requests(&self, scene: &Scene<'_>) -> Words {
        let (what, action) = match (self.is_cache, scene.is_held) {
            (true, _) => (
                " It is a KV cache that grows: the keys and values of earlier requests stay.",
                "Drop or reset the KV cache when a request ends, or bound the number of sessions \
                 that keep one.",
            ),
            (false, false) if self.is_most_of_graph() => (
                "",
                "What is kept holds its autograd graph: store it with .detach() or .item(), or \
                 run the pass under torch.no_grad().",
            ),
            (false, true) => ("", "Remove what it keeps of a request when that ends, or bound it."),
            (false, false) => (
                "",
                "Find what keeps something of each request: a list, a dict, a cache, a queue. Drop \
                 it when the request ends, or bound it.",
            ),
        };
        Words {
            title: self.title(scene, if self.is_cache { "KV cache kept" } else { "Leak" }),
            text: format!(
                "{}, {} in total.{what}{} {}.",
                self.grows(scene),
                self.total,
                self.called(scene),
                self.outlook(scene)
            ),
            action: action.to_owned(),
        }
    }

    /// Whether the blocks that stay are a large part of those that a pass makes, as a graph is.
    fn is_most_of_graph(&self) -> bool {
        let is_large = |(kept, all): (Bytes, Bytes)| kept.0 * 4 >= all.0;
        self.activations.is_some_and(is_large)
    }
}
