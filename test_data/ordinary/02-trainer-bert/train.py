"""Masked language modelling with a small BERT from scratch."""
import sys

import numpy as np
import torch
from torch.utils.data import Dataset

# the installed datasets wants a newer huggingface_hub; it is not used here
sys.modules["datasets"] = None
from transformers import (BertConfig, BertForMaskedLM, Trainer, TrainingArguments,
                          set_seed)

VOCAB_SIZE = 8192
SEQ_LEN = 256
MASK_ID = 4


class SyntheticMLMDataset(Dataset):
    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(5, VOCAB_SIZE, (size, SEQ_LEN), generator=g)
        self.mask = torch.rand(size, SEQ_LEN, generator=g) < 0.15

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        labels = self.tokens[i].clone()
        input_ids = self.tokens[i].clone()
        input_ids[self.mask[i]] = MASK_ID
        labels[~self.mask[i]] = -100
        return {
            "input_ids": input_ids,
            "attention_mask": torch.ones_like(input_ids),
            "labels": labels,
        }


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    predictions = np.argmax(logits, axis=-1)
    mask = labels != -100
    accuracy = (predictions[mask] == labels[mask]).mean()
    return {"accuracy": float(accuracy)}


def main():
    set_seed(42)

    config = BertConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=6,
        intermediate_size=1536,
        max_position_embeddings=SEQ_LEN,
    )
    model = BertForMaskedLM(config)
    print(f"Model has {model.num_parameters() / 1e6:.1f}M parameters")

    train_dataset = SyntheticMLMDataset(128, seed=0)
    eval_dataset = SyntheticMLMDataset(256, seed=1)

    training_args = TrainingArguments(
        output_dir="bert-mlm",
        per_device_train_batch_size=16,
        per_device_eval_batch_size=16,
        num_train_epochs=1,
        learning_rate=5e-4,
        weight_decay=0.01,
        warmup_steps=2,
        lr_scheduler_type="linear",
        bf16=True,
        logging_steps=2,
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
    )

    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=train_dataset,
        eval_dataset=eval_dataset,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    metrics = trainer.evaluate()
    print(metrics)


if __name__ == "__main__":
    main()
