private import CPCRE2
private import Glibc

/// A PCRE2 pattern that must match its whole subject, with limits on the work.
///
/// The pattern is compiled once (with JIT if available) and immutable; each thread has its own match data, so event
/// loops can match concurrently. If a subject exceeds the match limit the outcome is `failed`, and callers must reject.
@safe final class RegularExpression: @unchecked Sendable {
    // Sendable: `code` and `limits` are written in `init` and only read afterwards, which PCRE2 allows from several
    // threads (pcre2api, "MULTITHREADING").

    /// The result of matching.
    enum Outcome: Sendable { case matched, unmatched, failed }

    /// The kind of subjects.
    enum Subject {
        /// Normalized paths: ASCII, matched byte by byte.
        case path
        /// Claims: UTF-8, matched by code points.
        case text
    }

    /// Steps of the matcher: far more than a reasonable pattern needs on 8 KiB, and a few milliseconds at most.
    private static let matchLimit: UInt32 = 100_000
    private static let depthLimit: UInt32 = 1_000
    private static let heapLimitKiB: UInt32 = 1_024
    private static let maximumPatternBytes = 8_192

    /// The pattern as written.
    let source: String
    private let code: OpaquePointer
    private let limits: OpaquePointer

    init(_ source: String, of subject: Subject) throws(PatternError) {
        guard source.utf8.count <= Self.maximumPatternBytes else {
            throw PatternError("is longer than \(Self.maximumPatternBytes) bytes")
        }
        guard let limits = unsafe pcre2_match_context_create_8(nil) else {
            throw PatternError("cannot be compiled: out of memory")
        }
        unsafe pcre2_set_match_limit_8(limits, Self.matchLimit)
        unsafe pcre2_set_depth_limit_8(limits, Self.depthLimit)
        unsafe pcre2_set_heap_limit_8(limits, Self.heapLimitKiB)
        do {
            unsafe code = try Self.compile(source, subject)
        } catch {
            unsafe pcre2_match_context_free_8(limits)
            throw error
        }
        unsafe self.limits = limits
        self.source = source
    }

    deinit {
        unsafe pcre2_code_free_8(code)
        unsafe pcre2_match_context_free_8(limits)
    }

    /// Matches a whole subject.
    func match(_ subject: Span<UInt8>) -> Outcome {
        guard let matchData = unsafe Self.matchData() else { return .failed }
        let status = unsafe subject.withUnsafeBufferPointer { bytes in
            unsafe pcre2_match_8(code, bytes.baseAddress, bytes.count, 0, 0, matchData, limits)
        }
        if status >= 0 { return .matched }
        return status == PCRE2_ERROR_NOMATCH ? .unmatched : .failed
    }

    /// How many groups the pattern has.
    var groupCount: Int {
        var count: UInt32 = 0
        return unsafe pcre2_pattern_info_8(code, UInt32(PCRE2_INFO_CAPTURECOUNT), &count) == 0 ? Int(count) : 0
    }

    /// Matches a whole subject.
    /// - Returns: the outcome, and if it matches where its groups are: first the whole, then up to nine groups; an empty
    ///   range for a group that took no part.
    func groups(in subject: Span<UInt8>) -> (outcome: Outcome, groups: [Range<Int>]) {
        guard let matchData = unsafe pcre2_match_data_create_8(10, nil) else { return (.failed, []) }
        defer { unsafe pcre2_match_data_free_8(matchData) }
        let status = unsafe subject.withUnsafeBufferPointer { bytes in
            unsafe pcre2_match_8(code, bytes.baseAddress, bytes.count, 0, 0, matchData, limits)
        }
        guard status >= 0 else { return (status == PCRE2_ERROR_NOMATCH ? .unmatched : .failed, []) }
        guard let offsets = unsafe pcre2_get_ovector_pointer_8(matchData) else { return (.failed, []) }
        // 0: more groups than there is room for, of which the first are filled in.
        let groups = (0..<(status == 0 ? 10 : Int(status))).map { group -> Range<Int> in
            let (start, end) = unsafe (offsets[2 * group], offsets[2 * group + 1])
            // A group without part in the match has the greatest of all offsets.
            return start <= end && end <= subject.count ? start..<end : 0..<0
        }
        return (.matched, groups)
    }

    private static func compile(_ source: String, _ subject: Subject) throws(PatternError) -> OpaquePointer {
        var options = PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C
        switch subject {
        case .path: options |= PCRE2_NEVER_UTF | PCRE2_NEVER_UCP
        case .text: options |= PCRE2_UTF
        }
        var reason: Int32 = 0
        var offset = 0
        var pattern = source
        let code = pattern.withUTF8 { bytes in
            unsafe pcre2_compile_8(bytes.baseAddress, bytes.count, options, &reason, &offset, nil)
        }
        guard let code = unsafe code else { throw PatternError("\(message(reason)) at offset \(offset)") }
        // Without JIT (for example, if the kernel forbids it) the interpreter is used with the same limits.
        _ = unsafe pcre2_jit_compile_8(code, PCRE2_JIT_COMPLETE)
        return unsafe code
    }

    private static func message(_ reason: Int32) -> String {
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 256) { buffer in
            let count = unsafe pcre2_get_error_message_8(reason, buffer.baseAddress, buffer.count)
            guard count > 0 else { return "cannot be compiled" }
            return unsafe String(decoding: buffer.prefix(Int(count)), as: UTF8.self)
        }
    }

    /// This thread's match data: one pair of offsets, allocated at the first match and freed with the thread.
    private static func matchData() -> OpaquePointer? {
        guard let key = matchDataKey else { return nil }
        if let known = unsafe pthread_getspecific(key) { return OpaquePointer(known) }
        guard let fresh = unsafe pcre2_match_data_create_8(1, nil) else { return nil }
        guard unsafe pthread_setspecific(key, UnsafeRawPointer(fresh)) == 0 else {
            unsafe pcre2_match_data_free_8(fresh)
            return nil
        }
        return unsafe fresh
    }

    private static let matchDataKey: pthread_key_t? = {
        var key = pthread_key_t()
        let status = unsafe pthread_key_create(&key) { data in
            if let data = unsafe data { unsafe pcre2_match_data_free_8(OpaquePointer(data)) }
        }
        return status == 0 ? key : nil
    }()
}

extension RegularExpression {
    /// A literal prefix of every match of a pattern, not necessarily the longest.
    ///
    /// It ends before the first character that is special in PCRE2, and is empty if the pattern has an alternation, so
    /// it is never longer than the true prefix.
    static func literalPrefix(of source: String) -> [UInt8] {
        var bytes = Array(source.utf8)
        if bytes.first == UInt8(ascii: "^") { bytes.removeFirst() }
        guard !bytes.contains(UInt8(ascii: "|")) else { return [] }
        var prefix: [UInt8] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                prefix.append(byte)
            case UInt8(ascii: "?"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "{"):
                // The quantifier may make the character before it optional.
                return Array(prefix.dropLast())
            default:
                return prefix
            }
        }
        return prefix
    }
}
