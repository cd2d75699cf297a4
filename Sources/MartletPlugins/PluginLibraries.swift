private import CLinux
package import MartletConfig
internal import MartletCore
package import MartletProvider

/// The libraries of `plugins:` in this process. Each is inspected as bytes, tried in a process of its own, and then loaded
/// once for the life of this process: configurations only choose among those that are loaded.
package final class PluginLibraries: Sendable {
    /// A library that was loaded.
    private struct Known {
        let identity: LibraryFile.Identity
        let registry: ProviderRegistry
    }

    /// Why a library is not used.
    private struct Rejection: Error {
        let findings: [PluginInspection.Finding]

        init(_ code: ErrorCode, _ text: String) { findings = [.init(code: code, text: text)] }
        init(_ inspection: PluginInspection) { findings = inspection.findings }
    }

    /// The largest file that is read.
    static let sizeLimit = 256 * 1024 * 1024

    private let host: PluginHost
    private let trial: @Sendable (String) -> PluginTrial.Outcome
    private let known = Lock<[String: Known]>([:])

    /// - Parameter trial: loads a library in another process.
    package init(
        host: PluginHost? = nil, trial: @escaping @Sendable (String) -> PluginTrial.Outcome = { PluginTrial.start($0) }
    ) {
        self.host = host ?? PluginHost(user: geteuid())
        self.trial = trial
    }

    /// Loads the libraries that are not loaded yet, and adds the providers of all of them to a registry.
    package func load(
        _ libraries: [Located<FilePath>], into registry: inout ProviderRegistry, _ diagnostics: inout Diagnostics
    ) {
        for library in libraries {
            let shown = quoted(library.value.text)
            do throws(Rejection) {
                let file = try Self.open(library.value.text)
                let known = known.withLock { $0[file.path] }
                let loaded =
                    if let known { known } else {
                        try loadFirst(file, shown, library, registry, &diagnostics)
                    }
                if loaded.identity != file.identity {
                    diagnostics.warning(
                        .pluginChanged, at: library.location,
                        "plugin \(shown) has changed since it was loaded, and stays as it was: restart the gateway, "
                            + "or send it SIGUSR2, to use the new file")
                }
                let existing = registry.add(loaded.registry) + loaded.registry.conflicts
                if let kind = existing.first { throw Self.conflict(kind.rawValue) }
            } catch {
                Self.report(error.findings, shown, library.location, &diagnostics)
            }
        }
    }

    /// Inspects and loads a library. Its own code runs here, so that no lock is held: of two reloads that load it at the
    /// same time, both use what the first one has registered.
    private func loadFirst(
        _ file: LibraryFile, _ shown: String, _ library: Located<FilePath>, _ registry: ProviderRegistry,
        _ diagnostics: inout Diagnostics
    ) throws(Rejection) -> Known {
        let inspection = try inspect(file)
        Self.report(inspection.findings, shown, library.location, &diagnostics)
        let loaded = try load(file, registry)
        return known.withLock { known in
            let first = known[file.path] ?? loaded
            known[file.path] = first
            return first
        }
    }

    private static func report(
        _ findings: [PluginInspection.Finding], _ shown: String, _ location: SourceLocation,
        _ diagnostics: inout Diagnostics
    ) {
        for finding in findings {
            let text = "plugin \(shown) \(finding.text)"
            if finding.isWarning {
                diagnostics.warning(finding.code, at: location, text)
            } else {
                diagnostics.error(finding.code, at: location, text)
            }
        }
    }

    private static func open(_ path: String) throws(Rejection) -> LibraryFile {
        do throws(FileReadError) { return try LibraryFile(path) } catch {
            throw Rejection(.pluginUnreadable, "cannot be read: \(error.reason)")
        }
    }

    /// Inspects the bytes.
    private func inspect(_ file: LibraryFile) throws(Rejection) -> PluginInspection {
        let bytes: [UInt8]
        do throws(FileReadError) { bytes = try readWholeFile(file.path, limit: Self.sizeLimit) } catch {
            throw Rejection(.pluginUnreadable, "cannot be read: \(error.reason)")
        }
        let inspection = PluginInspection(
            PluginFile(bytes: bytes, owner: file.owner, mode: file.mode, openDirectory: file.openDirectory), for: host)
        if inspection.isRejected { throw Rejection(inspection) }
        return inspection
    }

    /// Tries the library elsewhere, and then loads it here.
    private func load(_ file: LibraryFile, _ registry: ProviderRegistry) throws(Rejection) -> Known {
        let report = try tried(file.path)
        let kinds = report.kinds.map { ProviderKind(rawValue: $0) }
        if let kind = kinds.first(where: { registry.factory(for: $0) != nil }) {
            throw Self.conflict(kind.rawValue)
        }
        if kinds.isEmpty {
            throw Rejection(.pluginLoadFailed, "registers no provider")
        }
        do throws(LoadedLibrary.LoadError) {
            let loaded = try LoadedLibrary(path: file.path)
            guard let now = try? LibraryFile(file.path), now.identity == file.identity else {
                throw LoadedLibrary.LoadError(message: "the file changed meanwhile")
            }
            return Known(identity: file.identity, registry: loaded.registry)
        } catch {
            throw Rejection(.pluginLoadFailed, "cannot be loaded: \(Self.oneLine(error.message))")
        }
    }

    private func tried(_ path: String) throws(Rejection) -> PluginReport {
        switch trial(path) {
        case .ended(let how):
            throw Rejection(.pluginLoadFailed, "cannot be loaded: it ended the process that tried it \(how)")
        case .timedOut: throw Rejection(.pluginLoadFailed, "cannot be loaded: it did not finish within 5 s")
        case .failed(let reason): throw Rejection(.pluginLoadFailed, "cannot be tried: \(reason)")
        case .reported(let report):
            if !report.undefined.isEmpty {
                throw Rejection(.pluginUndefinedSymbols, Self.missing(report.undefined))
            }
            if let error = report.loadError {
                throw Rejection(.pluginLoadFailed, "cannot be loaded: \(Self.oneLine(error))")
            }
            if let mismatch = report.mismatch { throw Rejection(.pluginStamp, Self.oneLine(mismatch)) }
            return report
        }
    }

    private static func missing(_ symbols: [String]) -> String {
        let shown = symbols.prefix(3).map(quoted).joined(separator: ", ")
        let rest = symbols.count > 3 ? " and \(symbols.count - 3) more" : ""
        return "needs symbols that this gateway does not have: \(shown)\(rest)"
    }

    private static func conflict(_ kind: String) -> Rejection {
        Rejection(.pluginKindExists, "brings the kind \(quoted(kind)), which exists already")
    }

    /// A text of a library, without control characters.
    private static func oneLine(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(300).map { $0.value < 0x20 ? " " : $0 }))
    }
}
