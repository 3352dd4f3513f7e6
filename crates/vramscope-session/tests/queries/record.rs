//! Records of blocks and findings by their ids, compared with the exported tables.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use serde_json::{Map, Value, json};
use vramscope_report::BlockReference;
use vramscope_session::FileSession;
use vramscope_session::messages::views::{Answer, BlockSort, BlockTable, Query, Table, TextForm};

/// The record with an id, as JSON; null if the device has none.
fn record(session: &mut FileSession, id: &str) -> Value {
    let record = answer!(*session, Query::Record { id: id.into() }, Record);
    serde_json::to_value(record).expect("plain values")
}

fn exported(session: &mut FileSession, what: Table) -> Value {
    let text = answer!(*session, Query::Export { what, form: TextForm::Json }, Text);
    serde_json::from_str(&text).expect("JSON")
}

/// All blocks in the order of the trace.
fn all_blocks() -> Table {
    Table::Blocks {
        table: BlockTable {
            text: String::new(),
            category: String::new(),
            live_at: None,
            sort: BlockSort::Allocated,
            descending: false,
        },
    }
}

/// The row of an exported block as a record: the stack and shape instead of their indices.
fn expected(reference: BlockReference, table: &Value, row: &Value) -> Value {
    let mut fields: Map<String, Value> = row.as_object().expect("a row").clone();
    let index = |value: Option<Value>| value.and_then(|index| index.as_u64()).map(|i| i as usize);
    let stack = index(fields.remove("stack")).expect("a stack");
    fields.insert("frames".into(), table["stacks"][stack].clone());
    if let Some(shape) = index(fields.remove("shape")) {
        fields.insert("shape".into(), table["shapes"][shape].clone());
    }
    fields.insert("reference".into(), reference.to_string().into());
    fields.insert("device".into(), reference.device.into());
    fields.into()
}

#[test]
fn record_of_a_block_is_its_exported_row() {
    // Blocks from before the window, blocks of reused addresses, blocks whose allocs are lost.
    for (name, lost) in [
        ("scenarios/f02.pickle", false),
        ("scenarios/f04.pickle", false),
        ("recorded/t26/gpt_small.pickle.gz", false),
        ("edge/lost_alloc.pickle", true),
    ] {
        let (mut session, _) = open_session(name);
        let file = load_file(name);
        let trace = report_target(&file).trace();
        let table = exported(&mut session, all_blocks());
        let rows = table["blocks"].as_array().expect("rows");
        assert_eq!(rows.len(), trace.blocks.len(), "{name}");
        let mut found_lost = false;
        for (block, row) in trace.blocks.iter().zip(rows).step_by(rows.len() / 20 + 1) {
            let reference = BlockReference::of(trace, block);
            found_lost |= reference.to_string().contains('~');
            let found = record(&mut session, &reference.to_string());
            assert_eq!(found, expected(reference, &table, row), "{name} {reference}");
        }
        assert_eq!(found_lost, lost, "{name}");
    }
}

#[test]
fn record_of_a_finding_is_its_exported_row() {
    let (mut session, _) = open_session("findings/s1_pool_strand.pickle.gz");
    let table = exported(&mut session, Table::Findings {});
    let rows = table["findings"].as_array().expect("rows");
    assert!(!rows.is_empty());
    for row in rows {
        let id = row["id"].as_str().expect("an id");
        assert_eq!(record(&mut session, id), *row);
    }
}

#[test]
fn record_of_an_unknown_id_is_null() {
    let (mut session, _) = open_session("scenarios/f02.pickle");
    for id in ["0:0x1200@2", "0:0x99@1", "1:0x1200@1", "growth-0-99", ""] {
        assert_eq!(record(&mut session, id), json!(null), "{id:?}");
    }
}
