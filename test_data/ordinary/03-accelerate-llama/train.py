import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from tqdm.auto import tqdm
from transformers import LlamaConfig, LlamaForCausalLM, get_cosine_schedule_with_warmup


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden_size", type=int, default=768)
    parser.add_argument("--num_layers", type=int, default=12)
    parser.add_argument("--seq_len", type=int, default=256)
    parser.add_argument("--per_device_batch_size", type=int, default=2)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument("--learning_rate", type=float, default=3e-4)
    parser.add_argument("--num_epochs", type=int, default=1)
    parser.add_argument("--num_samples", type=int, default=12)
    parser.add_argument("--output_dir", type=str, default=None)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = parse_args()
    accelerator = Accelerator(
        mixed_precision="bf16",
        gradient_accumulation_steps=args.gradient_accumulation_steps,
    )
    set_seed(args.seed)

    config = LlamaConfig(
        vocab_size=32000,
        hidden_size=args.hidden_size,
        intermediate_size=int(args.hidden_size * 8 / 3) // 64 * 64,
        num_hidden_layers=args.num_layers,
        num_attention_heads=12,
        num_key_value_heads=12,
        max_position_embeddings=2048,
        use_cache=False,
    )
    model = LlamaForCausalLM(config)
    accelerator.print(f"training {model.num_parameters() / 1e6:.0f}M parameters")

    tokens = torch.randint(0, config.vocab_size, (args.num_samples, args.seq_len))
    loader = DataLoader(TensorDataset(tokens), batch_size=args.per_device_batch_size,
                        shuffle=True)

    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate,
                                  betas=(0.9, 0.95), weight_decay=0.1)
    total_steps = len(loader) * args.num_epochs // args.gradient_accumulation_steps
    scheduler = get_cosine_schedule_with_warmup(optimizer, 2, total_steps)

    model, optimizer, loader, scheduler = accelerator.prepare(
        model, optimizer, loader, scheduler)

    progress = tqdm(total=total_steps, disable=not accelerator.is_local_main_process)
    model.train()
    for epoch in range(args.num_epochs):
        for (input_ids,) in loader:
            with accelerator.accumulate(model):
                outputs = model(input_ids=input_ids, labels=input_ids)
                accelerator.backward(outputs.loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                progress.update(1)
                progress.set_postfix(loss=outputs.loss.item(), lr=scheduler.get_last_lr()[0])

        accelerator.print(f"epoch {epoch} done")
        if args.output_dir is not None:
            accelerator.wait_for_everyone()
            accelerator.unwrap_model(model).save_pretrained(args.output_dir)


if __name__ == "__main__":
    main()
