//! Infrequent opcodes: those of protocols 0 and 1, and those that build objects of classes.

use crate::error::{ByteOffset, PickleError};
use crate::heap::{Heap, Oddity};
use crate::machine::{Halt, Machine, stack};
use crate::opcode as op;
use crate::operands::Operands;
use crate::sink::Sink;
use crate::text;
use crate::value::{Kind, StrId, Value};

impl<S: Sink> Machine<S> {
    /// Runs one infrequent operation.
    #[cold]
    #[inline(never)]
    pub(crate) fn slow_opcode(
        &mut self,
        code: u8,
        operands: &mut Operands<'_>,
        at: ByteOffset,
    ) -> Result<(), Halt> {
        match code {
            op::INT => match operands.line()? {
                b"00" => self.stack.push(Value::bool(false)),
                b"01" => self.stack.push(Value::bool(true)),
                line => {
                    let i = text::literal(line, at)?;
                    self.push_text_int(i, at);
                }
            },
            op::LONG => {
                let line = operands.line()?;
                let i = text::literal(line.strip_suffix(b"L").unwrap_or(line), at)?;
                self.push_text_int(i, at);
            }
            op::FLOAT => {
                let f = text::float(operands.line()?, at)?;
                let value = self.heap.make_float(f);
                self.stack.push(value);
            }
            op::STRING => {
                let s = text::quoted(operands.line()?, at)?;
                self.push_str(&s);
            }
            op::UNICODE => {
                let s = text::raw_unicode_escape(operands.whole_line()?, at)?;
                self.push_str(&s);
            }
            op::GET => {
                let index = text::index(operands.line()?, at)?;
                let value = self.recall(index, at)?;
                self.stack.push(value);
            }
            op::PUT => {
                let index = text::index(operands.line()?, at)?;
                self.memoize(index, at)?;
            }
            op::DICT | op::LIST => {
                let from = self.pop_mark("DICT or LIST", at)?;
                let container =
                    if code == op::DICT { self.heap.new_dict() } else { self.heap.new_list() };
                self.stack.insert(from, container);
                self.marks.push(from as u32 + 1);
                self.batch("DICT or LIST", code == op::DICT, at, at + 1)?;
            }
            op::GLOBAL => {
                let module = operands.line()?;
                let name = operands.line()?;
                self.push_class(module, name);
            }
            op::STACK_GLOBAL => {
                let [module, name] = self.pop_strings("STACK_GLOBAL", at)?;
                let [module, name] = [module, name].map(|id| self.heap.strings.bytes(id));
                if !self.heap.budget.ask(module.len() + name.len()) {
                    // The next check of the budget ends the read.
                    return Ok(());
                }
                let dotted = [module, b".", name].concat();
                let id = self.heap.strings.intern(&dotted);
                self.stack.push(Value::class(id));
            }
            op::REDUCE | op::NEWOBJ => {
                let args = self.pop("REDUCE", at)?;
                let class = self.pop("REDUCE", at)?;
                let args = Arguments::new(&self.heap, self.heap.items(args));
                self.call(class, args, at);
            }
            op::NEWOBJ_EX => {
                self.pop("NEWOBJ_EX", at)?;
                let args = self.pop("NEWOBJ_EX", at)?;
                let class = self.pop("NEWOBJ_EX", at)?;
                let args = Arguments::new(&self.heap, self.heap.items(args));
                self.call(class, args, at);
            }
            op::BUILD => {
                // Drops the state: the object stays closed.
                self.pop("BUILD", at)?;
                self.top("BUILD", at)?;
            }
            op::INST => {
                let module = operands.line()?;
                let name = operands.line()?;
                let from = self.pop_mark("INST", at)?;
                let args = self.arguments(from);
                self.stack.truncate(from);
                self.push_class(module, name);
                let class = self.pop("INST", at)?;
                self.call(class, args, at);
            }
            op::OBJ => {
                let from = self.pop_mark("OBJ", at)?;
                let class =
                    *self.stack.get(from).ok_or(stack("OBJ", "a class after its mark", at))?;
                let args = self.arguments(from + 1);
                self.stack.truncate(from);
                self.call(class, args, at);
            }
            op::EMPTY_SET => self.push_opaque("set", at),
            op::FROZENSET => {
                let from = self.pop_mark("FROZENSET", at)?;
                self.stack.truncate(from);
                self.push_opaque("frozenset", at);
            }
            op::ADDITEMS => {
                let from = self.pop_mark("ADDITEMS", at)?;
                self.stack.truncate(from);
                self.top("ADDITEMS", at)?;
            }
            op::PERSID => {
                operands.line()?;
                self.push_opaque("persistent id", at);
            }
            op::BINPERSID => {
                self.pop("BINPERSID", at)?;
                self.push_opaque("persistent id", at);
            }
            op::EXT1 | op::EXT2 | op::EXT4 => {
                operands.take([1, 2, 4][usize::from(code - op::EXT1)])?;
                self.push_opaque("extension", at);
            }
            op::NEXT_BUFFER => self.push_opaque("buffer", at),
            op::READONLY_BUFFER => {
                self.top("READONLY_BUFFER", at)?;
            }
            code => return Err(PickleError::UnknownOpcode { code, at }.into()),
        }
        Ok(())
    }

    fn pop_strings(&mut self, op: &'static str, at: ByteOffset) -> Result<[StrId; 2], PickleError> {
        let (second, first) = (self.pop(op, at)?, self.pop(op, at)?);
        match (first.kind(), second.kind()) {
            (Kind::Str(first), Kind::Str(second)) => Ok([first, second]),
            _ => Err(stack(op, "two strings", at)),
        }
    }

    fn push_text_int(&mut self, i: Option<i128>, at: ByteOffset) {
        match i {
            Some(i) => self.push_int(i),
            None => self.push_huge(at),
        }
    }

    fn push_class(&mut self, module: &[u8], name: &[u8]) {
        let dotted = [module, b".", name].concat();
        let id = self.heap.strings.intern(&dotted);
        self.stack.push(Value::class(id));
    }

    fn push_opaque(&mut self, what: &str, at: ByteOffset) {
        let name = self.heap.strings.intern(what.as_bytes());
        self.heap.note(Oddity::Opaque(name), at);
        self.stack.push(Value::opaque(name));
    }

    /// The arguments from stack index `from` on.
    fn arguments(&self, from: usize) -> Arguments {
        Arguments::new(&self.heap, self.stack.get(from..).unwrap_or_default())
    }

    /// Pushes the result of calling `class`. Nothing is called: known dict and list types without
    /// content become empty dicts and lists, TorchScript's type tags are unwrapped, and everything
    /// else stays closed.
    fn call(&mut self, class: Value, args: Arguments, at: ByteOffset) {
        let name = match class.kind() {
            Kind::Class(name) | Kind::Opaque(name) => name,
            _ => self.heap.strings.intern(b"a call of something other than a class"),
        };
        let value = match self.heap.strings.bytes(name) {
            b"collections.OrderedDict" | b"collections.defaultdict" | b"builtins.dict"
                if args.are_empty =>
            {
                self.heap.new_dict()
            }
            b"collections.deque" | b"builtins.list" if args.are_empty => self.heap.new_list(),
            b"torch.jit._pickle.restore_type_tag" if let Some(inner) = args.first => {
                // The arguments still hold it.
                self.heap.share(inner, || false);
                inner
            }
            _ => {
                self.heap.note(Oddity::Opaque(name), at);
                Value::opaque(name)
            }
        };
        self.stack.push(value);
    }
}

/// What counts of the arguments of a call.
#[derive(Clone, Copy)]
struct Arguments {
    /// Whether there is nothing but default factories, limits of length and empty containers.
    are_empty: bool,
    first: Option<Value>,
}

impl Arguments {
    fn new(heap: &Heap, args: &[Value]) -> Self {
        let are_empty = args.iter().all(|&arg| match arg.kind() {
            Kind::None | Kind::Class(_) => true,
            Kind::List(_) | Kind::Dict(_) | Kind::Tuple(_) => {
                arg == heap.resolve(arg) && heap.items(arg).is_empty()
            }
            _ => false,
        });
        Self { are_empty, first: args.first().copied() }
    }
}
