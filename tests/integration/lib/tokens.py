"""
JSON Web Tokens for tests: keys by the openssl command, signatures by it and by hmac, so that nothing of the gateway's takes
part in them.
"""
import base64
import hashlib
import hmac
import json
import os
import subprocess


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def part(value):
    return b64(value if isinstance(value, bytes) else json.dumps(value).encode())


def openssl(*args, data=None):
    return subprocess.run(["openssl", *args], input=data, capture_output=True, check=True, timeout=180).stdout


def raw_ecdsa(der):
    """r and s as 32 bytes each, out of SEQUENCE { INTEGER r, INTEGER s }."""
    n = der[3]
    r, s = der[4:4 + n], der[6 + n:]
    return b"".join(x.lstrip(b"\0").rjust(32, b"\0") for x in (r, s))


class Key:
    GENERATE = {"RS256": ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "ES256": ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
                "EdDSA": ["ED25519"]}

    def __init__(self, folder, alg, kid=None):
        self.folder, self.alg, self.kid = folder, alg, kid or f"key-{alg}"
        self.path = os.path.join(folder, f"{self.kid}.key")
        if alg == "HS256":
            self.secret = os.urandom(48)
            return
        openssl("genpkey", "-algorithm", *self.GENERATE[alg], "-out", self.path)
        self.public = openssl("pkey", "-in", self.path, "-pubout")
        self.der = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")

    def jwk(self):
        about = {"kid": self.kid, "alg": self.alg, "use": "sig"}
        if self.alg == "HS256":
            return {**about, "kty": "oct", "k": b64(self.secret)}
        if self.alg == "ES256":
            return {**about, "kty": "EC", "crv": "P-256", "x": b64(self.der[-64:-32]), "y": b64(self.der[-32:])}
        if self.alg == "EdDSA":
            return {**about, "kty": "OKP", "crv": "Ed25519", "x": b64(self.der[-32:])}
        said = openssl("rsa", "-pubin", "-noout", "-modulus", data=self.public).decode()
        return {**about, "kty": "RSA", "n": b64(bytes.fromhex(said.strip().split("=")[1])), "e": "AQAB"}

    def sign(self, data):
        if self.alg == "HS256":
            return hmac.new(self.secret, data, hashlib.sha256).digest()
        if self.alg == "EdDSA":
            path = self.path + ".in"  # -rawin reads no pipe
            with open(path, "wb") as out:
                out.write(data)
            return openssl("pkeyutl", "-sign", "-inkey", self.path, "-rawin", "-in", path)
        signature = openssl("dgst", "-sha256", "-sign", self.path, data=data)
        return raw_ecdsa(signature) if self.alg == "ES256" else signature

    def token(self, claims, **header):
        head = {"alg": self.alg, "typ": "JWT", "kid": self.kid, **header}
        text = f"{part({k: v for k, v in head.items() if v is not None})}.{part(claims)}"
        return f"{text}.{b64(self.sign(text.encode()))}"


def bearer(token):
    return f"Authorization: Bearer {token}\r\n"
