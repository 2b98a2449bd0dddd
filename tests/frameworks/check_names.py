#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_names.py: are the functions that analysis/symbols/role_names.c knows by name those of the published packages? Their wheels lie in
build/frameworks/names (scripts/setup clients); nothing of them is installed. Prints TAP: a row that no package has must be
of ELSEWHERE, with its reason, and what is there may not be found. check_names.py --table prints where each name is."""
import pathlib
import re
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'tests/frameworks')]
import stand_in # noqa: E402

FOLDER = ROOT / 'build/frameworks/names'
ROW = re.compile(r'\{ "([^"]+)", (?:"([^"]+)"|NULL), (\w+) \}')
DEFINED = re.compile(r'^([ \t]*)(?:(class)|(?:async )?def) (\w+)', re.MULTILINE)
# rows of other packages, and of versions that are still in use
ELSEWHERE = {
    '_allocate_kv_cache_tensors': 'an earlier vLLM, gpu_model_runner.py; now allocate_kv_cache',
    '_allocate_kv_cache': 'an earlier vLLM (V0), worker/cache_engine.py',
    'KVCacheManager.__init__': 'TensorRT-LLM, pyexecutor/resource_manager.py; vLLM has a class of that name, without device memory',
    'init_memory_pool model_runner': 'an earlier SGLang, model_executor/model_runner.py; now _init_pools',
    'CudaGraphRunner.capture': 'an earlier SGLang, model_executor/cuda_graph_runner.py; now DecodeCudaGraphRunner and PrefillCudaGraphRunner',
    'capture_begin': 'PyTorch, cuda/graphs.py',
    'make_graphed_callables': 'PyTorch, cuda/graphs.py',
    '_load_state_dict_into_model': 'Transformers 4, modeling_utils.py; now convert_and_load_state_dict_in_model',
    'set_module_tensor_to_device': 'accelerate, utils/modeling.py',
    'load_checkpoint_and_dispatch': 'accelerate, big_modeling.py',
    'load_file safetensors': 'safetensors, torch.py',
    'Module._apply': 'PyTorch, nn/modules/module.py',
    'Module.to': 'PyTorch, nn/modules/module.py',
    'Module.cuda': 'PyTorch, nn/modules/module.py',
    'init_process_group': 'PyTorch, distributed/distributed_c10d.py',
    'all_reduce distributed': 'PyTorch, distributed/distributed_c10d.py',
    'all_gather_into_tensor distributed': 'PyTorch, distributed/distributed_c10d.py',
    '_call_impl': 'PyTorch, nn/modules/module.py',
}
# names that another package happens to have, too: finding them says nothing
COMMON = {'KVCacheManager.__init__', 'all_reduce distributed', 'all_gather_into_tensor distributed', 'init_process_group', 'set_module_tensor_to_device',
          'make_graphed_callables', 'capture_begin', 'Module.to', 'CudaGraphRunner.capture'}


def rows():
    """[(end of the qualified name, part of the file or '', role)] of the table of Python functions"""
    text = (ROOT / 'analysis/symbols/role_names.c').read_text()
    table = text[text.index('code_table[] = {'):]
    return ROW.findall(table[:table.index('\n};')])


def definitions(text):
    """Qualified names of a source's functions, by indentation."""
    open_blocks = []
    for indent, is_class, name in DEFINED.findall(text):
        depth = len(indent.expandtabs(8))
        while open_blocks and open_blocks[-1][0] >= depth:
            open_blocks.pop()
        qualified = '.'.join([*(block for _, block in open_blocks), name])
        open_blocks.append((depth, name))
        if not is_class:
            yield qualified


def look(wheels):
    """{(end, part): [(package, version, file)]}"""
    wanted = {(end, part): [] for end, part, _ in rows()}
    last = re.compile(r'\bdef (?:' + '|'.join(sorted({end.split('.')[-1] for end, _ in wanted})) + r')\b')
    for wheel in wheels:
        package, version = wheel.name.split('-')[:2]
        with zipfile.ZipFile(wheel) as archive:
            for file in (name for name in archive.namelist() if name.endswith('.py')):
                text = archive.read(file).decode(errors='replace')
                if not last.search(text):
                    continue
                for qualified in set(definitions(text)):
                    for (end, part), found in wanted.items():
                        if (qualified == end or qualified.endswith('.' + end)) and part in '/' + file:
                            found.append((package, version, file))
    return wanted


def key(end, part):
    return f'{end} {part}'.strip()


def check(found):
    missing = sorted(key(*row) for row, places in found.items() if not places and key(*row) not in ELSEWHERE)
    assert not missing, f'no package has {missing}'
    stale = sorted(set(ELSEWHERE) - {key(*row) for row in found})
    assert not stale, f'not in the table any more: {stale}'
    back = sorted(key(*row) for row, places in found.items() if places and key(*row) in set(ELSEWHERE) - COMMON)
    assert not back, f'said to be elsewhere, and found: {back}'
    return f'{sum(bool(places) for places in found.values())} of {len(found)} names found'


def test():
    wheels = sorted(FOLDER.glob('*.whl'))
    if not wheels:
        raise stand_in.Skip(stand_in.absent('names').replace('setup frameworks', 'setup clients'))
    found = look(wheels)
    if '--table' in sys.argv:
        for row, places in sorted(found.items()):
            packages = sorted({(package, version) for package, version, _ in places})
            where = '; '.join(f'{package} {version}: ' + min((file for name, _, file in places if name == package), key=lambda path: (path.count('/'), path))
                              for package, version in packages)
            print(f'| `{key(*row)}` | {where or ELSEWHERE.get(key(*row), "nowhere")} |', file=sys.stderr)
    return check(found)


stand_in.tap([('the functions whose names tell a role are in the published packages', test)])
