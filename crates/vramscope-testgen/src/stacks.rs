//! Call stacks as PyTorch captures them with `stacks="all"`: C++ and Python frames, innermost
//! first. Stacks share their frames.

use crate::random::Random;
use crate::sites::{ACTS, Act, FLEET_PLACES, MAKES, OPS, Op, PARTS, PLACES, Place};
use rustc_hash::FxHashMap;

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// All frames, and all stacks as lists of frame numbers.
pub(crate) struct Stacks {
    pub(crate) frames: Vec<Frame>,
    pub(crate) stacks: Vec<Vec<u32>>,
}

type Call<'a> = (&'a str, &'a str, u32);

const UNWIND: [Call<'_>; 3] = [
    ("torch::unwind::unwind()", "??", 0),
    ("torch::CapturedTraceback::gather(bool, bool, bool)", "??", 0),
    ("torch::cuda::(anonymous namespace)::gather_with_cpp()", "memory_snapshot.cpp", 0),
];
const MALLOC: [Call<'_>; 4] = [
    (
        "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(\
         signed char, unsigned long, CUstream_st*)",
        "CUDACachingAllocator.cpp",
        0,
    ),
    (
        "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::malloc(\
         void**, signed char, unsigned long, CUstream_st*)",
        "",
        0,
    ),
    (
        "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)",
        "",
        0,
    ),
    (
        "c10::StorageImpl::StorageImpl(c10::StorageImpl::use_byte_size_t, c10::SymInt const&, \
         c10::Allocator*, bool)",
        "",
        0,
    ),
];
const FREE: [Call<'_>; 3] = [
    (
        "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::free(\
         c10::cuda::CUDACachingAllocator::Native::(anonymous namespace)::Block*)",
        "CUDACachingAllocator.cpp",
        0,
    ),
    ("c10::StorageImpl::~StorageImpl()", "", 0),
    ("c10::TensorImpl::~TensorImpl() [clone .localalias]", "TensorImpl.cpp", 0),
];
const PYTHON: &str = "/usr/src/Python-3.11.7/";
/// Frames of the interpreter between two Python functions.
const INTERPRETER: [Call<'_>; 4] = [
    ("_PyEval_EvalFrame", "Include/internal/pycore_ceval.h", 73),
    ("_PyObject_FastCallDictTstate", "Objects/call.c", 141),
    ("_PyVectorcall_Call", "Objects/call.c", 257),
    ("do_call_core", "Python/ceval.c", 7352),
];
/// Python functions through which modules are called, one inside the other.
const CALLERS: [Call<'_>; 8] = [
    ("_call_impl", "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1786),
    (
        "_wrapped_call_impl",
        "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py",
        1775,
    ),
    ("forward", "/train/model/stage.py", 61),
    ("_fn", "/opt/venv/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py", 1044),
    ("forward", "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/container.py", 250),
    ("run_function", "/opt/venv/lib/python3.11/site-packages/torch/utils/checkpoint.py", 488),
    ("inner", "/opt/venv/lib/python3.11/site-packages/torch/_compile.py", 53),
    ("forward", "/train/model/model.py", 118),
];
const MAIN: [Call<'_>; 7] = [
    ("train_step", "/train/train.py", 130),
    ("main", "/train/train.py", 212),
    ("<module>", "/train/train.py", 240),
    ("run_eval_code_obj", "/usr/src/Python-3.11.7/Python/pythonrun.c", 1710),
    ("pymain_main", "/usr/src/Python-3.11.7/Modules/main.c", 710),
    ("__libc_start_main_impl", "./csu/../csu/libc-start.c", 360),
    ("_start", "??", 0),
];
const ENGINE: [Call<'_>; 5] = [
    (
        "torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&, \
         torch::autograd::Node*, torch::autograd::InputBuffer&, \
         std::shared_ptr<torch::autograd::ReadyQueue> const&)",
        "??",
        0,
    ),
    (
        "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)",
        "??",
        0,
    ),
    (
        "torch::autograd::python::PythonEngine::thread_init(int, \
         std::shared_ptr<torch::autograd::ReadyQueue> const&, bool)",
        "",
        0,
    ),
    ("start_thread", "./nptl/./nptl/pthread_create.c", 442),
    ("clone3", "./misc/../sysdeps/unix/sysv/linux/x86_64/clone3.S", 81),
];

fn frames(calls: &[Call<'_>]) -> Vec<Frame> {
    calls
        .iter()
        .map(|&(name, file, line)| Frame { name: name.into(), file: file.into(), line })
        .collect()
}

/// The frames from the allocator out to the operation that allocates.
fn dispatched(op: &str) -> Vec<Frame> {
    let sizes = "c10::ArrayRef<c10::SymInt>, std::optional<c10::ScalarType>, \
                 std::optional<c10::Layout>, std::optional<c10::Device>, std::optional<bool>";
    let own = [
        (
            format!("at::(anonymous namespace)::(anonymous namespace)::wrapper_CUDA_{op}({sizes})"),
            "RegisterCUDA_0.cpp",
        ),
        (
            format!(
                "c10::impl::wrap_kernel_functor_unboxed_<\
                 c10::impl::detail::WrapFunctionIntoFunctor_<\
                 c10::CompileTimeFunctionPointer<at::Tensor ({sizes}), \
                 at::(anonymous namespace)::(anonymous namespace)::wrapper_CUDA_{op}>, \
                 at::Tensor, c10::guts::typelist::typelist<{sizes}> >, \
                 at::Tensor ({sizes})>::call(c10::OperatorKernel*, c10::DispatchKeySet, {sizes})"
            ),
            "RegisterCUDA_0.cpp",
        ),
        (format!("at::_ops::{op}::redispatch(c10::DispatchKeySet, {sizes})"), "??"),
        (
            format!(
                "torch::autograd::VariableType::(anonymous namespace)::{op}(\
                 c10::DispatchKeySet, {sizes})"
            ),
            "VariableType_3.cpp",
        ),
        (format!("at::_ops::{op}::call({sizes})"), "??"),
    ];
    let mut all = frames(&UNWIND);
    all.extend(frames(&MALLOC));
    all.extend(own.map(|(name, file)| Frame { name, file: file.into(), line: 0 }));
    all
}

fn freed() -> Vec<Frame> {
    let mut all = frames(&UNWIND);
    all.extend(frames(&FREE));
    all
}

struct Builder<'a> {
    depth: usize,
    random: &'a mut Random,
    numbers: FxHashMap<Frame, u32>,
    stacks: Stacks,
}

impl Stacks {
    /// Stacks of all sites in the order of their numbers, with `depth` frames on average.
    pub(crate) fn new(depth: usize, random: &mut Random) -> Self {
        let stacks = Self { frames: Vec::new(), stacks: Vec::new() };
        let mut builder = Builder { depth, random, numbers: FxHashMap::default(), stacks };
        builder.places(&PLACES);
        for make in MAKES {
            for part in 0..PARTS {
                let hook = format!("accumulate_{make}_{part}");
                let own = frames(&[
                    ("torch::autograd::AccumulateGrad::apply", "", 0),
                    (&hook, "/train/hooks.py", 12),
                ]);
                builder.add(dispatched("new_empty_strided"), own, &ENGINE);
            }
        }
        for act in ACTS {
            for make in MAKES {
                for (n, op) in OPS.iter().enumerate() {
                    builder.operation(act, make, n as u32, op);
                }
            }
        }
        builder.places(&FLEET_PLACES);
        builder.stacks
    }
}

impl Builder<'_> {
    fn places(&mut self, places: &[Place]) {
        for place in places {
            let head = place.call.map_or_else(freed, dispatched);
            self.add(head, frames(&[(place.function, place.file, place.line)]), &MAIN);
        }
    }

    fn operation(&mut self, act: Act, make: &str, n: u32, op: &Op) {
        let head = match act {
            Act::Result => dispatched(op.name),
            Act::Workspace => dispatched("empty_memory_format"),
            Act::Gradient => dispatched(&format!("{}_backward", op.name)),
            Act::WorkspaceDone | Act::Drop | Act::Release | Act::Consume => freed(),
        };
        let file = format!("/train/model/{make}.py");
        match act {
            Act::Result | Act::Workspace | Act::WorkspaceDone | Act::Drop => {
                let line = 40 + 8 * n + act as u32;
                self.add(
                    head,
                    frames(&[("forward", &file, line), (op.module, &file, 300 + n)]),
                    &MAIN,
                );
            }
            Act::Gradient | Act::Release | Act::Consume => {
                let node = format!(
                    "torch::autograd::generated::{}Backward0::apply({make}, {})",
                    op.name, op.module
                );
                let mut own = frames(&[(&node, "", 0)]);
                if matches!(act, Act::Release) {
                    let release = format!(
                        "torch::autograd::generated::{}Backward0::release_variables()",
                        op.name
                    );
                    own.insert(0, Frame { name: release, file: "Functions.cpp".into(), line: 0 });
                }
                self.add(head, own, &ENGINE);
            }
        }
    }

    /// Composes a stack: the allocating frames, the site itself, callers up to the depth, and the
    /// start of the program.
    fn add(&mut self, mut head: Vec<Frame>, own: Vec<Frame>, start: &[Call<'_>]) {
        let depth =
            self.depth - self.depth / 4 + self.random.below(self.depth as u64 / 2 + 1) as usize;
        let mut tail = frames(start);
        // A short stack loses frames of C++ first, then of the start.
        let room = depth.saturating_sub(own.len());
        tail.truncate(room.div_ceil(2));
        head.drain(..head.len().saturating_sub(room - tail.len()));
        let between = depth.saturating_sub(head.len() + own.len() + tail.len());
        let callers = (0..between).map(|n| {
            let (name, file, line) =
                if n % 2 == 1 { CALLERS[n / 2 % CALLERS.len()] } else { INTERPRETER[n / 2 % 4] };
            let file = if file.starts_with('/') { file.into() } else { format!("{PYTHON}{file}") };
            // A function that occurs again calls from another line.
            Frame { name: name.into(), file, line: line + (n / 16) as u32 }
        });
        let all: Vec<Frame> = head.into_iter().chain(own).chain(callers).chain(tail).collect();
        let stack = all.into_iter().map(|frame| self.frame(frame)).collect();
        self.stacks.stacks.push(stack);
    }

    fn frame(&mut self, frame: Frame) -> u32 {
        let frames = &mut self.stacks.frames;
        *self.numbers.entry(frame).or_insert_with_key(|frame| {
            frames.push(frame.clone());
            frames.len() as u32 - 1
        })
    }
}
