package import MartletCore
package import MartletTLS

/// The TLS files of a URL.
extension RedisURL.Security {
    /// Replaces every file name by its resolved path.
    package mutating func resolveFiles(_ resolve: (String) -> String) {
        caFile = caFile.map(resolve)
        certificateFile = certificateFile.map(resolve)
        keyFile = keyFile.map(resolve)
    }

    /// Reads the files and creates a TLS context.
    /// - Throws: a `tls.` code if a file is unusable.
    package func makeContext() throws(StoreError) -> TLSClientContext {
        var options = TLSClientOptions(trust: caFile.map { .file($0) } ?? .system)
        if let certificateFile, let keyFile {
            options.identity = TLSIdentityFiles(certificateFile: certificateFile, keyFile: keyFile)
        }
        do { return try TLSClientContext(options) } catch {
            throw StoreError(code: error.code, message: error.message)
        }
    }
}
