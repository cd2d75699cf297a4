import Foundation
import MartletConfig
import MartletCore
import MartletPlugins
import MartletProvider
import MartletTesting
import Testing

@Suite struct `Libraries of a configuration` {
    /// What is reported about a good library whose trial ends like this.
    static func errors(_ outcome: PluginTrial.Outcome) throws -> [String] {
        let folder = try TemporaryFolder()
        let path = folder.file("lib.so")
        let bytes = try `Inspected libraries`.bytes()
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
        var host = `Inspected libraries`.host
        host.user = geteuid()
        let libraries = PluginLibraries(host: host, trial: { _ in outcome })
        var registry = ProviderRegistry()
        var diagnostics = Diagnostics()
        let location = SourceLocation(file: "config.yaml", line: 7, column: 11)
        libraries.load([Located(FilePath(path), at: location)], into: &registry, &diagnostics)
        #expect(registry.kinds.isEmpty)
        #expect(diagnostics.all.allSatisfy { $0.location.line == 7 && $0.location.column == 11 })
        return diagnostics.errors.map(\.code.rawValue)
    }

    @Test func `are not loaded after a failed trial`() throws {
        var undefined = PluginReport()
        undefined.undefined = ["a"]
        undefined.loadError = "undefined symbol: a"
        var mismatch = PluginReport()
        mismatch.mismatch = "says that it was built for something else"
        #expect(try Self.errors(.ended("by signal 11")) == ["plugin.load_failed"])
        #expect(try Self.errors(.timedOut) == ["plugin.load_failed"])
        #expect(try Self.errors(.failed("no process")) == ["plugin.load_failed"])
        #expect(try Self.errors(.reported(undefined)) == ["plugin.undefined_symbols"])
        #expect(try Self.errors(.reported(mismatch)) == ["plugin.stamp"])
        #expect(try Self.errors(.reported(PluginReport())) == ["plugin.load_failed"])
    }

    @Test func `are not loaded if they do not say here what the trial said`() throws {
        // The entry of this library returns nothing.
        var report = PluginReport()
        report.kinds = ["line"]
        #expect(try Self.errors(.reported(report)) == ["plugin.load_failed"])
    }
}
