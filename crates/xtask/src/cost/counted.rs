//! Instruments a wasm module: it counts its own instructions in an exported global.

use anyhow::Result;
use walrus::ir::{
    BinaryOp, Binop, Const, GlobalGet, GlobalSet, Instr, InstrLocId, InstrSeq, InstrSeqId, Value,
    Visitor,
};
use walrus::{ConstExpr, GlobalId, LocalFunction, Module, ValType};

/// Name of the exported global.
const NAME: &str = "instructions";

/// Adds an update of the counter before each straight run of instructions.
///
/// `block` and `loop` are not counted. A copy of memory counts as one instruction, whatever its
/// length. JavaScript is not counted.
pub(super) fn module(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut module = Module::from_buffer(wasm)?;
    let count =
        module.globals.add_local(ValType::I64, true, false, ConstExpr::Value(Value::I64(0)));
    module.exports.add(NAME, count);
    for (_, function) in module.funcs.iter_local_mut() {
        for seq in sequences(function) {
            let block = function.block_mut(seq);
            block.instrs = with_counts(std::mem::take(&mut block.instrs), count);
        }
    }
    Ok(module.emit_wasm())
}

/// All sequences of a function, nested ones included.
fn sequences(function: &LocalFunction) -> Vec<InstrSeqId> {
    struct Ids(Vec<InstrSeqId>);
    impl Visitor<'_> for Ids {
        fn start_instr_seq(&mut self, seq: &InstrSeq) {
            self.0.push(seq.id());
        }
    }
    let mut ids = Ids(Vec::new());
    walrus::ir::dfs_in_order(&mut ids, function, function.entry_block());
    ids.0
}

type Instrs = Vec<(Instr, InstrLocId)>;

fn with_counts(instrs: Instrs, count: GlobalId) -> Instrs {
    let mut out = Vec::with_capacity(instrs.len() * 2);
    let mut run = Vec::new();
    for (instr, at) in instrs {
        let is_end = ends_run(&instr);
        run.push((instr, at));
        if is_end {
            close(&mut out, &mut run, count);
        }
    }
    close(&mut out, &mut run, count);
    out
}

/// Appends a run behind the instructions that add its length to the counter.
fn close(out: &mut Instrs, run: &mut Instrs, count: GlobalId) {
    let length =
        run.iter().filter(|(instr, _)| !matches!(instr, Instr::Block(_) | Instr::Loop(_))).count();
    if length > 0 {
        let add = [
            Instr::GlobalGet(GlobalGet { global: count }),
            Instr::Const(Const { value: Value::I64(length as i64) }),
            Instr::Binop(Binop { op: BinaryOp::I64Add }),
            Instr::GlobalSet(GlobalSet { global: count }),
        ];
        out.extend(add.map(|instr| (instr, InstrLocId::default())));
    }
    out.append(run);
}

/// True when the next instruction may not be executed after this one.
fn ends_run(instr: &Instr) -> bool {
    matches!(
        instr,
        Instr::Block(_)
            | Instr::Loop(_)
            | Instr::IfElse(_)
            | Instr::Br(_)
            | Instr::BrIf(_)
            | Instr::BrTable(_)
            | Instr::Return(_)
            | Instr::Unreachable(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    use walrus::FunctionBuilder;

    /// Calls `turn` of a module from stdin with some numbers, and prints the count of each call.
    const SCRIPT: &str = "
        const module = new WebAssembly.Module(require('fs').readFileSync(0));
        const { exports } = new WebAssembly.Instance(module);
        for (const n of [1, 2, 5]) {
            exports.instructions.value = 0n;
            exports.turn(n);
            console.log(`${exports.instructions.value}`);
        }";

    /// A function that loops `n` times: 9 instructions each, and 2 more for an odd counter.
    fn turning() -> Vec<u8> {
        let mut module = Module::default();
        let mut builder = FunctionBuilder::new(&mut module.types, &[ValType::I32], &[]);
        let times = module.locals.add(ValType::I32);
        builder.func_body().loop_(None, |turn| {
            let id = turn.id();
            turn.local_get(times).i32_const(1).binop(BinaryOp::I32And);
            turn.if_else(None, |odd| _ = odd.i32_const(7).drop(), |_| {});
            turn.local_get(times).i32_const(1).binop(BinaryOp::I32Sub).local_tee(times).br_if(id);
        });
        let function = builder.finish(vec![times], &mut module.funcs);
        module.exports.add("turn", function);
        module.emit_wasm()
    }

    #[test]
    fn executed_instructions_are_counted() -> Result<()> {
        let counted = module(&turning())?;
        let mut node = Command::new("node");
        let mut node =
            node.args(["-e", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        node.stdin.take().expect("stdin is piped").write_all(&counted)?;
        let printed = String::from_utf8(node.wait_with_output()?.stdout)?;
        let turns = |n: u64| 9 * n + 2 * n.div_ceil(2);
        assert_eq!(printed, format!("{}\n{}\n{}\n", turns(1), turns(2), turns(5)));
        Ok(())
    }
}
