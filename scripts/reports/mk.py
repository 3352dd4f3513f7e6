import json,os,re
R='/tmp/rep/out'
def pk(n,w):
    t=open(f'{R}/{n}/{w}.log').read(); m=re.search(r'PEAK (\d+) (\d+)',t)
    return dict(active=int(m[1]),reserved=int(m[2]),out_of_memory='OutOfMemoryError' in t)
C=[
('torchsim_autobatch','TorchSim/torch-sim#590','Completed states keep energy with its grad_fn: each finished batch pins its whole forward graph until the end of optimize. Detach when popped.',r'(?i)(graph|activation|saved for backward|forward)[^.\n]{0,80}(kept|held|pile|stay|of each|every|earlier|older|grow)|completed_states|never (run|call)s? backward|torchsim_autobatch\.py:64','detach the states when they are popped',r'detach|^del:|no_grad'),
('alf_resume','HorizonRobotics/alf#1532','torch.load without map_location puts the whole checkpoint on the GPU beside the live copies (weights, replay storage).',r'(?i)map_location|alf_resume\.py:63|checkpoint[^.\n]{0,60}(GPU|device|twice|second)|torch\.load','torch.load(map_location="cpu")',r'map_location|host'),
('dreambooth_sd3','huggingface/diffusers#8511','The three text encoders stay on the GPU through training because text_encoder_one/two/three still reference them.',r'(?i)text_encoder|dreambooth_sd3\.py:(20|21|22|23|24|65)|T5EncoderModel|CLIPText','del text_encoder_one, text_encoder_two, text_encoder_three',r'^del|host|offload'),
('patchcore_test','hcw-00/PatchCore_anomaly_detection#19','distance_matrix materializes the [n, m, d] difference and its power.',r'patchcore_test\.py:22|cdist|distance_matrix','torch.cdist',r'cdist|chunk|slice'),
('sd_vae_decode','huggingface/diffusers#1150','The VAE decodes the whole batch of images in one call: its activations are the peak.',r'(?i)sd_vae_decode\.py:(74|25|26|36|53)|decode_latents|vae\.decode|AutoencoderKL|vae','decode one image at a time',r'chunk|slice|split|batch'),
('opacus_eval','meta-pytorch/opacus#176','In evaluation the model is in training mode, hooks append every layer input to layer.activations, nothing takes them off.',r'opacus_eval\.py:31|capture_activations_hook|layer\.activations','model.eval() before the evaluation',r'eval|clear|^del:'),
('all_atari_dqn','cpnota/autonomous-learning-library#144','Every state in the replay buffer on the GPU owns a copy of four frames; frames are stored four times.',r'all_atari_dqn\.py:(39|46)|self\.buffer|[Rr]eplay','lazy frame stack on tensors: single frames by reference',None),
('hooked_transformer','TransformerLensOrg/TransformerLens#479','Every attention module holds its own n_ctx x n_ctx boolean mask: 16 x 64 MiB.',r'(?i)hooked_transformer\.py:(23|24)|\bmask\b|causal','build the mask on the fly',None),
('torchtune_full','meta-pytorch/torchtune#389','AdamW foreach intermediates as large as the parameters in optimizer.step are the peak.',r'(?i)foreach|torchtune_full\.py:70','foreach=False','foreach'),
('run_nerf','yenchenlin/nerf-pytorch#23','All training rays and images are copied to the GPU.',r'run_nerf\.py:62|rays_rgb','keep the rays on the host, load the batch only',r'host|offload|cpu'),
]
out=[]
for n,s,t,w,c,l in C:
    d=dict(case=n,source=s,truth=t,want_regex=w,cure=c,peak_before=pk(n,'before'),peak_after=pk(n,'cured'))
    if l: d['lever']=l
    out.append(d)
json.dump(out,open(f'{R}/truth.json','w'),indent=1)
