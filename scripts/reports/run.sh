#!/bin/bash
# run.sh NAME...: records NAME before and cured to /tmp/rep2/out/NAME/{before,cured}
for n in "$@"; do
  p=/work/wt/reports2/scripts/reports/$n.py; cap=$(sed -n 's/^# CAP=//p' $p)
  for w in before cured; do
    o=/tmp/rep2/out/$n/$w; rm -rf $o; mkdir -p $o
    CURE=$([ $w = cured ] && echo 1) OUT=$o FAKECUDA_CAPACITY_MB=$cap PYTHONPATH=/tmp/rep2/site:/work/main/python LD_LIBRARY_PATH=/work/gate/target/standin/fake CUDA_MODULE_LOADING=LAZY \
      nice timeout 300 /work/gate/target/standin/venv/bin/python $p > /tmp/rep2/out/$n/$w.log 2>&1
    rc=$?; rm -rf ${o}_all; cp -r $o ${o}_all; l=$(ls -d $o/*/ | tail -1); mv $l* $o/; rm -rf $o/*/; (exit $rc); echo "$n $w rc=$? $(grep -h PEAK /tmp/rep2/out/$n/$w.log | tail -1) $(grep -hE '^[A-Za-z.]*Error' /tmp/rep2/out/$n/$w.log | tail -1 | cut -c1-150)"
  done; cp $p /tmp/rep2/out/$n/prog.py
done
