package import MartletCore

/// What the rest of the process may tell a loop.
extension Mailbox {
    /// Goes on with a new configuration; a socket of −1 is one that the loop has already.
    package func adopt(_ snapshot: Snapshot, listeners: [ListenerSocket]) {
        post(.adopt(snapshot, listeners: listeners))
    }

    /// New addresses of host names.
    package func resolved(_ names: [ResolvedName]) { post(.resolved(names)) }

    /// Forgets every verdict.
    package func forget() { post(.forget) }

    /// Forgets the copies of sessions that have ended, and verdicts on subjects: see ``SubjectNumber``.
    /// - Parameter acknowledgement: is told when they are gone, or the loop is.
    package func revoked(_ numbers: [UInt64], _ acknowledgement: LoopAcknowledgement? = nil) {
        post(.revoked(numbers, acknowledgement))
    }

    /// Refuses session tokens, known ones too, or no longer does.
    package func refuseSessions(_ refuses: Bool) { post(.refuseSessions(refuses)) }

    /// Writes access lines in the format that the log has now.
    package func logFormatChanged() { post(.logFormatChanged) }

    /// Accepts no more, serves what is under way, and ends; what is left at the deadline is cut.
    ///
    /// - Parameter hasHeir: whether another process accepts from the same sockets, which have what waits there.
    package func drain(until deadline: MonotonicTime, hasHeir: Bool = false) {
        post(.drain(deadline: deadline.nanoseconds, hasHeir: hasHeir))
    }

    /// The loop's counters; `nil` when it does not answer in time.
    package func report(within patience: Duration) async -> LoopReport? {
        let answer = OnceOnly<LoopReport>()
        post(.collect { answer.settle($0) })
        return await answer.value(within: patience)
    }
}
