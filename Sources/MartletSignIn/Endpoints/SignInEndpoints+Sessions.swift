internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletProxy
internal import MartletSession

/// What callers may see and do about their own sessions.
extension SignInEndpoints {
    /// `GET /session`.
    func session(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let caller = try await caller(of: request)
        let identity = caller.principal.identity
        return Answer.json([
            "subject": .string(caller.principal.subject),
            "provider": .string(caller.principal.provider),
            "claims": .object(identity.claims),
            "session_id": .string(caller.session.id),
            "expires_at": .integer(identity.expiresAt.seconds),
        ])
    }

    /// `GET /sessions`.
    func sessions(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let caller = try await caller(of: request)
        let summaries: [SessionSummary]
        do throws(SessionError) {
            summaries = try await setup.sessions.list(subject: caller.session.subject)
        } catch {
            throw .session(error)
        }
        let entries = summaries.map { summary in
            JSONValue.object(summary.entry(isCurrent: summary.id.hasSameBytes(as: caller.session.id)))
        }
        return Answer.json(["sessions": .array(entries)])
    }

    /// `DELETE /sessions/{id}`: one that is another's looks like one that is not there.
    func endSession(_ id: String, _ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let caller = try await caller(of: request)
        let session = SessionReference(subject: caller.session.subject, id: id)
        let wasThere: Bool
        do throws(SessionError) { wasThere = try await setup.sessions.end(session) } catch { throw .session(error) }
        guard wasThere else { throw .notFound(.signInUnknownSession) }
        return Answer.done
    }

    /// `POST /logout`, of this session or, with `?all=true`, of every one.
    func logout(_ request: LocalRequest) async throws(Failure) -> LocalResponse {
        let isForAll = try Self.asksForAll(request.query)
        let caller = try await caller(of: request)
        do throws(SessionError) {
            if isForAll {
                try await setup.sessions.endAll(subject: caller.session.subject, provider: nil, except: nil)
            } else {
                _ = try await setup.sessions.end(caller.session)
            }
        } catch {
            throw .session(error)
        }
        return Answer.done
    }

    /// Whoever means every session must not be left with some by a slip of the pen: only `true` and `false` are taken.
    private static func asksForAll(_ query: String) throws(Failure) -> Bool {
        let answers = query.utf8.split(separator: UInt8(ascii: "&")).filter { pair in
            pair.elementsEqual("all".utf8) || pair.starts(with: "all=".utf8)
        }
        guard let answer = answers.first else { return false }
        guard answers.count == 1 else { throw .malformed(.signInBadQuery) }
        if answer.elementsEqual("all=true".utf8) { return true }
        if answer.elementsEqual("all=false".utf8) { return false }
        throw .malformed(.signInBadQuery)
    }
}
