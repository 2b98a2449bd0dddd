# SPDX-License-Identifier: Apache-2.0
"""make_model.py FILE: a Llama of a few MB with random weights and a vocabulary of bytes, as GGUF. Knows nothing."""
import sys

import gguf
import numpy

LAYERS, WIDTH, HEADS, KV_HEADS, INNER, CONTEXT = 4, 256, 8, 4, 688, 2048
SPECIAL = ['<unk>', '<s>', '</s>']


def main(path):
    tokens = SPECIAL + [f'<0x{byte:02X}>' for byte in range(256)]
    types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.BYTE] * 256
    writer = gguf.GGUFWriter(path, 'llama')
    writer.add_name('tiny')
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model('llama')
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    random = numpy.random.default_rng(1)

    def tensor(name, *shape):
        values = numpy.ones(shape) if name.endswith('norm.weight') else random.normal(0, 0.02, shape)
        writer.add_tensor(name, values.astype(numpy.float32))

    tensor('token_embd.weight', len(tokens), WIDTH)
    for layer in range(LAYERS):
        kv = WIDTH // HEADS * KV_HEADS
        for name, shape in {'attn_norm': [WIDTH], 'attn_q': [WIDTH, WIDTH], 'attn_k': [kv, WIDTH], 'attn_v': [kv, WIDTH], 'attn_output': [WIDTH, WIDTH],
                            'ffn_norm': [WIDTH], 'ffn_gate': [INNER, WIDTH], 'ffn_up': [INNER, WIDTH], 'ffn_down': [WIDTH, INNER]}.items():
            tensor(f'blk.{layer}.{name}.weight', *shape)
    tensor('output_norm.weight', WIDTH)
    tensor('output.weight', len(tokens), WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main(sys.argv[1])
