//! Tests of frames.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn python_frames_and_operations_are_distinctive() {
    for (name, file) in [
        ("forward", "/train/model.py"),
        ("forward", "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py"),
        ("<module>", "<ipython-input-3-abc>"),
        ("at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)", "??"),
        ("torch::autograd::generated::MulBackward0::apply(std::vector<at::Tensor>&&)", ""),
    ] {
        assert!(is_distinctive(name, file), "{name} {file}");
    }
    for (name, file) in [
        ("do_call_core", "/usr/local/src/Python/ceval.c"),
        ("_PyObject_VectorcallTstate", "/usr/local/include/internal/pycore_call.h"),
        ("at::TensorIteratorBase::build(at::TensorIteratorConfig&)", "??"),
        ("torch::unwind::unwind()", "??"),
    ] {
        assert!(!is_distinctive(name, file), "{name} {file}");
    }
}

#[test]
fn is_framework_file_separates_pytorch_and_python_from_user_code() {
    for file in [
        "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py",
        r"D:\venv\Lib\site-packages\torch\functional.py",
        r"C:\Users\me\AppData\Local\Programs\Python\Python311\Lib\contextlib.py",
        r"C:\miniconda3\envs\train\lib\runpy.py",
        "/usr/lib/python3.11/threading.py",
        "/build/pytorch/torch/csrc/autograd/engine.cpp",
        "/build/pytorch/torch/nn/functional.py",
        "??",
        "",
        "<frozen runpy>",
        "/opt/venv/lib/python3.11/site-packages/vramscope/__main__.py",
        "/home/me/vramscope/python/vramscope/recorder/__init__.py",
    ] {
        assert!(is_framework_file(file), "{file}");
    }
    for file in [
        "/train/model.py",
        r"D:\train\lib\model.py",
        r"D:\venv\Lib\site-packages\transformers\models\gpt2\modeling_gpt2.py",
        "model.py",
        "/home/me/torch/train.py",
        "/opt/venv/lib/python3.11/site-packages/transformers/models/qwen2/modeling_qwen2.py",
        "/home/me/vramscope/train.py",
        "<ipython-input-3-abc>",
    ] {
        assert!(!is_framework_file(file), "{file}");
    }
}

/// [`is_framework_file`] for Python files, as a plain search for each folder in the path.
fn contains_framework_folder(file: &str) -> bool {
    let mut torch = Vec::from(["/site-packages/torch/", "/dist-packages/torch/"].map(String::from));
    for folder in
        "nn autograd optim utils cuda distributed _dynamo _inductor _functorch csrc fx amp"
            .split(' ')
    {
        torch.push(format!("/torch/{folder}/"));
    }
    torch.extend(["/torch/_ops.py", "/torch/_tensor.py"].map(String::from));
    let library = file.contains("/lib/python") && !file.contains("-packages/");
    library || torch.iter().any(|folder| file.contains(folder))
}

proptest! {
    #[test]
    fn is_framework_file_matches_a_search_for_each_folder(
        parts in vec(
            prop_oneof![
                Just(""),
                Just("lib"),
                Just("python3.11"),
                Just("site-packages"),
                Just("my-packages"),
                Just("torch"),
                Just("nn"),
                Just("_functorch"),
                Just("csrc"),
                Just("_ops.py"),
                Just("_tensor.pyx"),
                Just("train"),
            ],
            0..7,
        ),
        name in prop_oneof![Just("_ops.py"), Just("model.py"), Just(".py")],
    ) {
        let file = [&parts[..], &[name]].concat().join("/");
        prop_assert_eq!(is_framework_file(&file), contains_framework_folder(&file), "{}", file);
    }
}

#[test]
fn is_generated_file_knows_the_caches_of_torch_compile() {
    let hash = "cxngi4kz3dqefauibwzq6qwjrwfsx3rjgy5rrzofdnyjgeukjosh";
    for file in [
        "/tmp/torchinductor_user/kb/ckbexample.py".to_owned(),
        "/cache/torchinductor/ab/cabexample.py".to_owned(),
        r"C:\Users\me\AppData\Local\Temp\torchinductor_me\kb\ckbexample.py".to_owned(),
        format!("/scratch/cache/xn/{hash}.py"),
    ] {
        assert!(is_generated_file(&file) && is_framework_file(&file), "{file}");
    }
    for file in [
        "/train/torchinductor.py".to_owned(),
        "/train/xn/model.py".to_owned(),
        format!("/scratch/cache/ab/{hash}.py"),
        format!("/scratch/cache/xn/{hash}.so"),
        format!("{hash}.py"),
        String::new(),
    ] {
        assert!(!is_generated_file(&file), "{file}");
    }
}

#[test]
fn is_framework_frame_knows_wrappers_of_packages() {
    let packages = "/opt/venv/lib/python3.11/site-packages";
    for (name, file) in [
        ("wrapper", "transformers/utils/generic.py"),
        ("wrapped_func", "transformers/utils/deprecation.py"),
        ("wrapped_fn", "deepspeed/utils/nvtx.py"),
        ("__call__", "accelerate/utils/operations.py"),
        ("forward", "accelerate/utils/operations.py"),
        ("__torch_dispatch__", "torch_snapkit/snapshot.py"),
    ] {
        assert!(is_framework_frame(name, &format!("{packages}/{file}")), "{name} {file}");
        let windows = format!("{packages}/{file}").replace('/', "\\");
        assert!(is_framework_frame(name, &windows), "{name} {windows}");
    }
    for (name, file) in [
        ("forward", format!("{packages}/transformers/models/gpt2/modeling_gpt2.py")),
        ("__call__", format!("{packages}/timm/layers/attention.py")),
        ("send_to_device", format!("{packages}/accelerate/utils/operations.py")),
        ("wrapper", "/train/utils/timing.py".to_owned()),
        ("wrapper", "/train/wrapper.py".to_owned()),
    ] {
        assert!(!is_framework_frame(name, &file), "{name} {file}");
    }
}
