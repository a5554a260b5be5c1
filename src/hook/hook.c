int hook_begin; 
