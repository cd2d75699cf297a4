internal import MartletConfig
package import MartletCore

/// What speaks against loading a library, as far as its bytes say.
package struct PluginInspection: Sendable {
    /// One reason.
    package struct Finding: Equatable, Sendable {
        package let code: ErrorCode
        /// Continues the file's name.
        package let text: String
        package var isWarning = false
    }

    package private(set) var findings: [Finding] = []

    /// Whether it must not be loaded.
    package var isRejected: Bool { findings.contains { !$0.isWarning } }

    package init() {}

    package init(_ file: PluginFile, for host: PluginHost) {
        checkOwner(file, host)
        checkContent(file, host)
    }

    private mutating func checkContent(_ file: PluginFile, _ host: PluginHost) {
        let library: ELFLibrary
        do throws(ELFError) { library = try ELFLibrary(file.bytes, for: host.machine) } catch {
            let code: ErrorCode = error.kind == .wrongArchitecture ? .pluginWrongArchitecture : .pluginNotELF
            return add(code, "is not a library for this gateway: \(error.reason) (byte \(error.offset))")
        }
        guard library.defined.contains("martlet_plugin") else {
            return add(
                .pluginNoEntry, "is not a plugin: it exports no martlet_plugin, which MartletPlugin.export is called in"
            )
        }
        guard library.notes.count == 1, let facts = library.notes.first.flatMap(PluginFacts.init) else {
            return add(.pluginNoEntry, "is not a plugin: it has no note .note.martlet, which MartletPlugin.export adds")
        }
        check(facts, host)
        checkLibraries(library)
    }

    private mutating func checkOwner(_ file: PluginFile, _ host: PluginHost) {
        if file.owner != 0, file.owner != host.user {
            add(
                .pluginOwner, "belongs to user \(file.owner): its owner must be root or the gateway's user \(host.user)"
            )
        }
        if file.mode & 0o022 != 0 {
            let who = file.mode & 0o002 != 0 ? "everyone" : "its group"
            let mode = String(file.mode & 0o7777, radix: 8)
            add(.pluginWritable, "is writable by \(who) (mode 0\(mode)): chmod go-w")
        }
        if let directory = file.openDirectory {
            findings.append(
                Finding(
                    code: .pluginDirectoryWritable,
                    text: "is in \(quoted(directory)), which others than its owner may write to", isWarning: true))
        }
    }

    /// Compares what it was built for and with; also what it says of itself once it is loaded.
    mutating func check(_ facts: PluginFacts, _ host: PluginHost) {
        guard facts.major == host.facts.major, facts.minor <= host.facts.minor else {
            return add(
                .pluginAPIVersion,
                "was built for version \(facts.major).\(facts.minor) of the plugin API; this gateway has "
                    + "\(host.facts.major).\(host.facts.minor)")
        }
        if facts.compiler != host.facts.compiler {
            add(
                .pluginCompiler,
                "was built by another compiler (\(quoted(facts.compiler))) than this gateway "
                    + "(\(quoted(host.facts.compiler))): build it with the same Swift toolchain")
        }
        let expected = facts.minor == host.facts.minor ? host.facts.stamp : host.earlier[facts.minor]
        if facts.stamp != expected {
            add(
                .pluginStamp,
                "was built against other public symbols (stamp \(quoted(String(facts.stamp.prefix(12))))) than those of "
                    + "version \(facts.major).\(facts.minor) "
                    + "(\(quoted(String((expected ?? "unknown").prefix(12))))): build it again")
        }
    }

    private mutating func checkLibraries(_ library: ELFLibrary) {
        let runtime = library.needed.first { name in
            ["libswift", "libFoundation", "lib_Foundation", "libdispatch"].contains { name.hasPrefix($0) }
        }
        guard let runtime else { return }
        add(
            .pluginOwnRuntime,
            "needs \(quoted(runtime)), a second copy of Swift's library: link it as the package of 'martlet plugin new' "
                + "does, without Foundation")
    }

    mutating func add(_ code: ErrorCode, _ text: String) { findings.append(Finding(code: code, text: text)) }
}
