import json,re
R='/tmp/rep2/out'
def pk(n,w):
    t=open(f'{R}/{n}/{w}.log').read(); m=re.search(r'PEAK (\d+) (\d+)',t)
    return dict(active=int(m[1]),reserved=int(m[2]),out_of_memory='OutOfMemoryError' in t)
G=r'(grow|kept|keep|pile|held|hold|stay|never freed|more each|earlier|each (call|request|step))'
C=[
('mellea_instruct','generative-computing/mellea#544','Every generate() output with its KV cache is stored in mot._meta["hf_output"]; the thunks stay in the context: one KV cache a call is kept.',rf'(?i)hf_output|self\.ctx|\bctx\b|past_key_values[^\n]{{0,80}}{G}|KV cache[^\n]{{0,80}}{G}|{G}[^\n]{{0,80}}KV cache|{G}[^\n]{{0,100}}mellea_instruct\.py:(29|32|47)|mellea_instruct\.py:(29|32|47)[^\n]{{0,120}}{G}','clear past_key_values and scores from hf_output after processing',r'clear|^del:'),
('rtdetr_server','huggingface/transformers#45412','lru_cache on a method of the class keeps every model that was called alive after del model: weights of each checkpoint pile up.',rf'(?i)lru_cache|generate_anchors|RTDetrV2Model[^\n]{{0,80}}{G}|{G}[^\n]{{0,100}}(RTDetrV2Model|rtdetr_server\.py:63|models?\b)|rtdetr_server\.py:63[^\n]{{0,120}}{G}|\d models','a cache per instance',r'cache|^del:'),
('agile_lora','AgileRL/AgileRL#623','LoRA adapters float32, base bfloat16: _cast_input_dtype copies the input of every wrapped linear to float32, autocast casts back, each linear keeps its own copy.',r'_cast_input_dtype|agile_lora\.py:(28|32)|float32 cop','no cast of the input under autocast',None),
('qlora_prepare','huggingface/peft#1149','prepare_model_for_kbit_training casts every parameter of the float16 base to float32.',r'prepare_model_for_kbit|qlora_prepare\.py:(22|79)','do not call prepare_model_for_kbit_training',None),
('instance_masks','roboflow/inference#2682','The masks of all detections are upscaled to the original resolution in one float32 batch before the threshold.',r'instance_masks\.py:39','upscale and threshold in slices of detections',r'chunk|slice|split'),
('composer_ema','mosaicml/composer#1941','EMA makes two deep copies of the model on the GPU (ema_model and training_model); the second is a mere store during evaluation.',r'(?i)training_model|composer_ema\.py:42|two (deep ?|more )?copies|3 (models|copies)|second copy|copied twice|held twice','one copy, swapped in place',None),
('demucs_apply','facebookresearch/demucs#231','The whole mix and whole-length results of every model of the bag stay on the GPU: four sources x track length several times.',r'(?i)demucs_apply\.py:(40|41|47|51|53|73)|estimates|\bwav\b','track and results stay on the host, segments are moved to the GPU',r'host|offload|cpu'),
('gcn_message','pyg-team/pytorch_geometric#459','GCNConv builds messages for every edge: x[edge_index[0]] and norm * x_j are [edges, 200].',r'(?i)gcn_message\.py:(35|38)|per edge|\bmessage\(','adjacency as a sparse tensor, matmul',None),
('verl_actor','verl-project/verl#6699','model_output keeps its grad_fn in output_lst until the batch is done: per micro-batch the embedding output and its gradient stay after backward.',rf'(?i)output_lst|model_output|(graph|embed)[^\n]{{0,80}}{G}|verl_actor\.py:50[^\n]{{0,120}}{G}|{G}[^\n]{{0,100}}verl_actor\.py:50|detach','detach the tensors of model_output',r'detach|^del:'),
('stgcn_main','FelixOpolka/STGCN-PyTorch#7','Validation passes the whole validation set through the net in one call; training is batched.',r'(?i)\bvalidate\b|stgcn_main\.py:67|600','validate in batches',r'chunk|slice|split|batch'),
]
out=[]
for n,s,t,w,c,l in C:
    d=dict(case=n,source=s,truth=t,want_regex=w,cure=c,peak_before=pk(n,'before'),peak_after=pk(n,'cured'))
    if l: d['lever']=l
    out.append(d)
json.dump(out,open(f'{R}/truth.json','w'),indent=1)
