use super::*;
use proptest::prelude::*;

/// The blocks that are still held without some references.
fn held(graph: &Graph, holds: &[(u32, u32)], without: &[(u32, u32)], blocks: usize) -> Vec<bool> {
    let next = Csr::new(
        graph.len() as usize,
        graph.edges().filter(|edge| !without.contains(edge)).collect::<Vec<_>>().into_iter(),
        &mut Pace::new(&|| true),
    )
    .unwrap();
    let mut seen = vec![false; graph.len() as usize];
    let mut todo: Vec<u32> =
        (0..graph.len()).filter(|&node| graph.kind(node) == Kind::Variable).collect();
    while let Some(node) = todo.pop() {
        if !std::mem::replace(&mut seen[node as usize], true) {
            todo.extend(next.of(node));
        }
    }
    let mut held = vec![false; blocks];
    for &(node, block) in holds {
        held[block as usize] |= seen[node as usize];
    }
    held
}

fn whole(graph: &Graph, holds: &[(u32, u32)], bytes: &[u64]) -> Drops {
    graph.drops(holds, bytes, &Limits::default(), |_| true, &|| true).unwrap()
}

proptest! {
    #[test]
    fn a_row_frees_what_it_says(
        variables in prop::collection::vec(0_u32..10, 1..4),
        pairs in prop::collection::vec((0_u32..10, 0_u32..10), 0..24),
        holds in prop::collection::vec((0_u32..10, 0_u32..4), 1..8),
        bytes in prop::collection::vec(1_u64..100, 4),
        hidden in 0_u32..10,
    ) {
        let mut graph = Graph::default();
        let objects: Vec<u32> = (0..10).map(|_| graph.add()).collect();
        for &to in &variables {
            let variable = graph.add_variable(false);
            graph.refer(variable, objects[to as usize]);
        }
        let mut pairs = pairs;
        pairs.sort_unstable();
        pairs.dedup();
        for &(from, to) in &pairs {
            graph.refer(from, to);
        }
        let limits = Limits { references: 3, ..Limits::default() };
        let drops = graph.drops(&holds, &bytes, &limits, |node| node != hidden, &|| true).unwrap();
        let before = held(&graph, &holds, &[], 4);
        for (index, row) in drops.rows.iter().enumerate() {
            let after = held(&graph, &holds, &row.references, 4);
            let is_freed = |&block: &usize| before[block] && !after[block];
            let freed: Vec<usize> = (0..4).filter(is_freed).collect();
            let sum: u64 = freed.iter().map(|&block| bytes[block]).sum();
            // Several variables may free more together than what only they hold together: each
            // frees its own part too.
            prop_assert!(row.bytes <= sum, "{row:?} frees {sum}");
            prop_assert!(row.references.len() > 1 || row.bytes == sum, "{row:?} frees {sum}");
            prop_assert!(row.within.is_none_or(|within| (within as usize) < index));
            for (block, innermost) in drops.of_block.iter().enumerate() {
                if *innermost == Some(index as u32) {
                    prop_assert!(freed.contains(&block), "{row:?} does not free block {block}");
                }
            }
        }
        // What one variable alone frees is in the rows outside of all others.
        let outer = drops.rows.iter().filter(|row| row.within.is_none());
        let top: u64 = outer.map(|row| row.bytes).sum();
        let all: u64 = (0..4).filter(|&block| before[block]).map(|block| bytes[block]).sum();
        prop_assert!(top <= all);
    }
}

#[test]
fn a_library_s_variable_holds_what_nothing_else_does() {
    let mut graph = Graph::default();
    let [mine, theirs] = [graph.add_variable(false), graph.add_variable(true)];
    let [loss, buffer, list] = [graph.add(), graph.add(), graph.add()];
    for (from, to) in [(mine, loss), (theirs, list), (list, loss), (list, buffer)] {
        graph.refer(from, to);
    }
    let drops = whole(&graph, &[(loss, 0), (buffer, 1)], &[8, 4]);
    let rows: Vec<_> = drops.rows.iter().map(|row| (row.references.clone(), row.bytes)).collect();
    // The list of the library refers to the loss, and goes away with the call.
    assert_eq!(rows, [(vec![(mine, loss)], 8), (vec![(list, buffer)], 4)]);
}

#[test]
fn what_the_object_itself_leads_to_does_not_count() {
    let mut graph = Graph::default();
    let variable = graph.add_variable(false);
    let [module, hook] = [graph.add(), graph.add()];
    for (from, to) in [(variable, module), (module, hook), (hook, module)] {
        graph.refer(from, to);
    }
    let drops = whole(&graph, &[(module, 0)], &[5]);
    assert_eq!(drops.rows.len(), 1);
    assert_eq!(drops.rows[0].references, [(variable, module)]);
}

#[test]
fn what_too_many_hold_is_no_row() {
    let mut graph = Graph::default();
    let tensor = graph.add();
    for _ in 0..9 {
        let variable = graph.add_variable(false);
        graph.refer(variable, tensor);
    }
    let drops = whole(&graph, &[(tensor, 0)], &[5]);
    assert_eq!((drops.rows.len(), drops.of_block.as_slice()), (0, &[None][..]));
}

/// A variable, and below it these references among `objects` objects. The last object holds a
/// block.
fn below_a_variable(objects: u32, references: impl Iterator<Item = (u32, u32)>) -> Graph {
    let mut graph = Graph::default();
    let variable = graph.add_variable(false);
    for _ in 0..objects {
        graph.add();
    }
    graph.refer(variable, 1);
    references.for_each(|(from, to)| graph.refer(1 + from, 1 + to));
    graph
}

#[test]
fn the_work_is_in_proportion_to_the_references() {
    let objects = 300_000;
    let chain = (1..objects).map(|to| (to - 1, to));
    let tree = (1..objects).map(|to| ((to - 1) / 2, to));
    // A list whose items refer to each other as a ring, and back to the list.
    let wide = (1..objects).flat_map(|to| [(0, to), (to, 0), (to, 1 + to % (objects - 1))]);
    let graphs = [
        below_a_variable(objects, chain),
        below_a_variable(objects, tree),
        below_a_variable(objects, wide),
    ];
    for graph in graphs {
        let asked = std::cell::Cell::new(0_u64);
        let goes_on = || {
            asked.set(asked.get() + 1);
            true
        };
        let limits = Limits::default();
        let hidden = |node: u32| node < objects;
        let drops = graph.drops(&[(objects, 0)], &[8], &limits, hidden, &goes_on).unwrap();
        assert_eq!(drops.rows.len(), 1);
        let steps = asked.get() * (1 << 14);
        let most = 30 * (u64::from(objects) + graph.references() as u64);
        assert!(steps < most, "{steps} steps, at most {most}");
    }
}

#[test]
fn work_that_may_not_go_on_stops() {
    let objects = 100_000;
    let graph = below_a_variable(objects, (1..objects).map(|to| (to - 1, to)));
    for most in 0..40 {
        let left = std::cell::Cell::new(most);
        let goes_on = || {
            left.set(left.get() - 1);
            left.get() >= 0
        };
        let told = graph.drops(&[(objects, 0)], &[8], &Limits::default(), |_| true, &goes_on);
        assert_eq!(told, Err(Stopped), "after {most} questions");
        assert_eq!(left.get(), -1);
    }
}
