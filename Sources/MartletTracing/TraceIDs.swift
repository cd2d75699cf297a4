/// The ID of a trace: 16 bytes that are not all zero.
@frozen package struct TraceID: Hashable, Sendable, BitwiseCopyable {
    package let high: UInt64
    package let low: UInt64

    @inline(__always)
    package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// Whether it may be used: one of zeros alone is invalid.
    package var isValid: Bool { high | low != 0 }

    /// As 32 lowercase hexadecimal digits.
    package var text: String { Hexadecimal.text(high, low) }
}

/// The ID of a span: 8 bytes that are not all zero.
@frozen package struct SpanID: Hashable, Sendable, BitwiseCopyable {
    package let number: UInt64

    @inline(__always)
    package init(_ number: UInt64) { self.number = number }

    /// Whether it may be used: one of zeros alone is invalid.
    package var isValid: Bool { number != 0 }

    /// As 16 lowercase hexadecimal digits.
    package var text: String { Hexadecimal.text(number) }
}

/// Lowercase hexadecimal digits, the only form that trace contexts have.
enum Hexadecimal {
    static func text(_ number: UInt64) -> String {
        unsafe String(unsafeUninitializedCapacity: 16) { digits in
            unsafe write(number, to: digits, at: 0)
            return 16
        }
    }

    static func text(_ high: UInt64, _ low: UInt64) -> String {
        unsafe String(unsafeUninitializedCapacity: 32) { digits in
            unsafe write(high, to: digits, at: 0)
            unsafe write(low, to: digits, at: 16)
            return 32
        }
    }

    private static func write(_ number: UInt64, to digits: UnsafeMutableBufferPointer<UInt8>, at start: Int) {
        for index in 0..<16 {
            let digit = UInt8(truncatingIfNeeded: number &>> UInt64(60 &- 4 &* index)) & 15
            unsafe digits[start + index] = digit < 10 ? digit &+ 0x30 : digit &+ 0x57
        }
    }

    /// The number of at most 16 digits; `nil` for anything else, uppercase letters included.
    static func number(_ digits: Span<UInt8>, from start: Int, count: Int) -> UInt64? {
        guard count <= 16, start + count <= digits.count else { return nil }
        var number: UInt64 = 0
        for index in start..<start + count {
            let digit = digits[index]
            switch digit {
            case 0x30...0x39: number = number << 4 | UInt64(digit &- 0x30)
            case 0x61...0x66: number = number << 4 | UInt64(digit &- 0x57)
            default: return nil
            }
        }
        return number
    }
}

/// Makes the IDs of one loop's traces from what identifies a request there: asked twice about a request, it gives the
/// same IDs, so that nothing has to be stored for requests that are not sampled.
///
/// Two requests of a loop never have the same ID, because the mixing can be undone; those of different loops and
/// processes differ by their random seeds, 128 bits.
@frozen package struct TraceIDSource: Sendable {
    private let first: UInt64
    private let second: UInt64

    package init(seeds first: UInt64, _ second: UInt64) { (self.first, self.second) = (first, second) }

    /// The IDs of a request's trace and of its own span.
    /// - Parameters:
    ///   - request: its number in the loop, which a later request may have again.
    ///   - started: when it began, in nanoseconds; later ones begin later.
    @inline(__always)
    package func ids(ofRequest request: UInt64, at started: Int64) -> (trace: TraceID, span: SpanID) {
        let owner = Self.mix(request ^ first)
        let high = Self.mix(owner &+ second)
        let low = Self.mix(UInt64(bitPattern: started) &+ owner)
        // A span of its own also where the trace is that of a caller, which sends many requests with one trace.
        let span = Self.mix(low ^ second)
        return (TraceID(high: high, low: high | low == 0 ? 1 : low), SpanID(span == 0 ? 1 : span))
    }

    /// The ID of a further span of a request.
    package func spanID(_ number: UInt64, after server: SpanID) -> SpanID {
        let mixed = Self.mix(server.number &+ number &* 0x9E37_79B9_7F4A_7C15)
        return SpanID(mixed == 0 ? 1 : mixed)
    }

    /// The finalizer of SplitMix64: a bijection.
    @inline(__always)
    private static func mix(_ value: UInt64) -> UInt64 {
        var mixed = (value ^ (value &>> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed &>> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed &>> 31)
    }
}

/// Which traces are sampled: a share of them, decided from the ID alone, so that all who know it decide alike.
@frozen package struct TraceSampler: Sendable, Equatable {
    /// Of the 56 bits at the end of an ID, those from here on are sampled.
    private let threshold: UInt64
    private static var whole: UInt64 { 1 << 56 }

    /// - Parameter millionths: how many of a million traces are sampled.
    package init(millionths: Int) {
        let share = UInt64(min(max(millionths, 0), 1_000_000))
        // 2⁵⁶ is no multiple of a million: the error is less than one in 10¹⁰.
        threshold = share == 1_000_000 ? 0 : Self.whole &- (Self.whole / 1_000_000 &* share)
    }

    /// Whether a trace is sampled.
    @inline(__always)
    package func samples(_ trace: TraceID) -> Bool { trace.low & (Self.whole &- 1) >= threshold }
}
