# realnode.sh - placeholder
real_check() { skip x; }
