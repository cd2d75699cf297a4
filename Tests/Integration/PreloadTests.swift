import MartletTesting
import Testing

/// Libraries that are loaded into every process of a machine, and change its environment before `main`.
@Suite(.timeLimit(.minutes(2))) struct `Preloaded libraries` {
    @Test(
        arguments: [
            "setenv(\"JAVA_TOOL_OPTIONS\", \"x\", 1)", "putenv(\"A=b\"); unsetenv(\"PATH\")", "clearenv()",
        ])
    func `leave the arguments alone`(change: String) throws {
        let folder = try TemporaryFolder()
        let source = try folder.write(
            """
            #define _GNU_SOURCE
            #include <stdlib.h>
            __attribute__((constructor)) static void change(void) { \(change); }

            """, to: "inject.c")
        let library = folder.file("inject.so")
        let compiled = try run(try Executable.named("cc"), ["-shared", "-fPIC", "-o", library, source])
        #expect(compiled.ending == .exited(0), "\(compiled)")
        let config = try folder.write(GatewayConfig(endpoints: ["http://127.0.0.1:9"]).text, to: "config.yaml")
        for arguments in [["check", "--config", config], ["check", config], ["version"]] {
            let result = try run(try Executable.martlet(), arguments, environment: ["LD_PRELOAD": library])
            #expect(result.ending == .exited(0), "\(arguments): \(result)")
        }
        let missing = try run(try Executable.martlet(), ["fly"], environment: ["LD_PRELOAD": library])
        #expect(missing.ending == .exited(64) && missing.errorOutput.contains("'fly'"), "\(missing)")
    }
}
