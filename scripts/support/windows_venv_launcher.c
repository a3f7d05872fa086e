#include <windows.h>
#include <wchar.h>
#include <stdio.h>
#include <stdlib.h>
static int gone(const char *what) { fprintf(stderr, "venvlauncher: %s (%lu)\n", what, GetLastError()); return 101; }
static wchar_t *arguments(void) { /* the command line after argv[0] */
    wchar_t *at = GetCommandLineW();
    int quoted = 0;
    for (; *at && (quoted || (*at != L' ' && *at != L'\t')); at++) if (*at == L'"') quoted = !quoted;
    return at;
}
static BOOL WINAPI ignored(DWORD event) { (void)event; return TRUE; } /* Python hears Ctrl-C itself */
int wmain(void) {
    static wchar_t self[32768], folder[32768], cfg[32768], python[32768], line[65536];
    static char text[65536];
    GetModuleFileNameW(NULL, self, 32768);
    SetEnvironmentVariableW(L"__PYVENV_LAUNCHER__", self);
    wcscpy(folder, self);
    FILE *f = NULL;
    for (int up = 0; up < 2 && !f; up++) {
        wchar_t *cut = wcsrchr(folder, L'\\');
        if (!cut) break;
        *cut = 0;
        swprintf(cfg, 32768, L"%ls\\pyvenv.cfg", folder);
        f = _wfopen(cfg, L"rb");
    }
    if (!f) return gone("no pyvenv.cfg");
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    for (char *row = strtok(text, "\r\n"); row; row = strtok(NULL, "\r\n")) {
        char *value = strchr(row, '=');
        if (!value || strncmp(row, "home", 4)) continue;
        while (*++value == ' ') {}
        MultiByteToWideChar(CP_UTF8, 0, value, -1, folder, 32768);
        swprintf(python, 32768, L"%ls\\python.exe", folder);
        swprintf(line, 65536, L"\"%ls\"%ls", python, arguments());
        STARTUPINFOW start = { sizeof start };
        GetStartupInfoW(&start);
        PROCESS_INFORMATION made;
        SetConsoleCtrlHandler(ignored, TRUE);
        HANDLE job = CreateJobObjectW(NULL, NULL);
        JOBOBJECT_EXTENDED_LIMIT_INFORMATION limit = { 0 };
        limit.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK;
        SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limit, sizeof limit);
        if (!CreateProcessW(python, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &made)) return gone("python.exe did not start");
        AssignProcessToJobObject(job, made.hProcess);
        WaitForSingleObject(made.hProcess, INFINITE);
        DWORD code = 1;
        GetExitCodeProcess(made.hProcess, &code);
        return (int)code;
    }
    return gone("no home in pyvenv.cfg");
}
