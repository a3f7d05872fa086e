# Ten minutes with ortgpu-fix on this Windows. Put this file and windows_check.py into one folder:
#
#     powershell -ExecutionPolicy Bypass -File windows_check.ps1
#
# It only starts windows_check.py, with its own arguments, and ends with its exit code. What is used:
# $PSScriptRoot, $LASTEXITCODE (about_Automatic_Variables), @args (about_Splatting), & (about_Operators).
$launcher = Get-Command py -CommandType Application -ErrorAction SilentlyContinue
$python = if ($launcher) { 'py' } else { 'python' }
& $python (Join-Path $PSScriptRoot 'windows_check.py') @args
exit $LASTEXITCODE
