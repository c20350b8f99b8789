/* A key and a certificate of the daemon's own, for sites without a CA: clients know it by its pin. */
#include "gpuqd/rpc/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "libgpuq/buf.h"
#include "libgpuq/limits.h"

#define YEARS 10
#define SERIAL_BYTES 16

static bool is_address(const char *name)
{
	unsigned char raw[16];

	return inet_pton(AF_INET, name, raw) == 1 || inet_pton(AF_INET6, name, raw) == 1;
}

static bool is_dns(const char *name)
{
	const size_t n = strlen(name);

	return n > 0 && n < 254 && name[0] != '-' && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-*") ==
		       n;
}

/* "DNS:head,IP:10.0.0.1" */
static int names_text(const char *const *names, size_t n, struct gpuq_buf *out,
		      struct gpuq_err *err)
{
	if (n == 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "--make-cert needs the names and addresses by which clients reach "
				 "this machine");
	for (size_t i = 0; i < n; i++) {
		const bool ip = is_address(names[i]);

		if (!ip && !is_dns(names[i]))
			return gpuq_fail(err, GPUQ_EINVAL,
					 "%s is neither a host name nor an address", names[i]);
		gpuq_buf_printf(out, "%s%s:%s", i ? "," : "", ip ? "IP" : "DNS", names[i]);
	}
	return out->failed ? gpuq_no_memory(err) : 0;
}

static bool extend(X509 *x, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;
	bool done;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	done = e && X509_add_ext(x, e, -1) == 1;
	X509_EXTENSION_free(e);
	return done;
}

static X509 *certificate(EVP_PKEY *key, const char *first, const char *names)
{
	unsigned char serial[SERIAL_BYTES];
	X509 *x = X509_new();
	BIGNUM *number = NULL;
	X509_NAME *subject;
	bool done = x && RAND_bytes(serial, sizeof(serial)) == 1;

	serial[0] &= 0x7f;
	number = done ? BN_bin2bn(serial, sizeof(serial), NULL) : NULL;
	done = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x));
	done = done && X509_set_version(x, X509_VERSION_3) &&
	       X509_gmtime_adj(X509_getm_notBefore(x), -3600) &&
	       X509_time_adj_ex(X509_getm_notAfter(x), YEARS * 365, 0, NULL) &&
	       X509_set_pubkey(x, key) == 1;
	if (done) {
		subject = X509_get_subject_name(x);
		done = X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
						  (const unsigned char *)first,
						  (int)strnlen(first, 64), -1, 0) == 1 &&
		       X509_set_issuer_name(x, subject) == 1;
	}
	done = done && extend(x, NID_basic_constraints, "critical,CA:FALSE") &&
	       extend(x, NID_key_usage, "critical,digitalSignature") &&
	       extend(x, NID_ext_key_usage, "serverAuth") &&
	       extend(x, NID_subject_alt_name, names) &&
	       extend(x, NID_subject_key_identifier, "hash") && X509_sign(x, key, EVP_sha256()) > 0;
	BN_free(number);
	if (done)
		return x;
	X509_free(x);
	return NULL;
}

static int pin_of(EVP_PKEY *key, char *out)
{
	unsigned char *der = NULL, sum[EVP_MAX_MD_SIZE];
	unsigned char text[64];
	const int n = i2d_PUBKEY(key, &der);
	unsigned n_sum = 0;
	int len, rc = -1;

	if (n > 0 && EVP_Digest(der, (size_t)n, sum, &n_sum, EVP_sha256(), NULL) == 1) {
		len = EVP_EncodeBlock(text, sum, (int)n_sum);
		while (len > 0 && text[len - 1] == '=')
			len--;
		for (int i = 0; i < len; i++)
			text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
		snprintf(out, GPUQ_PIN_BYTES, "sha256:%.*s", len, (const char *)text);
		rc = 0;
	}
	OPENSSL_free(der);
	return rc;
}

/* A new file; an existing one is never replaced. */
static FILE *create(const char *path, mode_t mode)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

static bool finish(FILE *f, bool written)
{
	written = fflush(f) == 0 && written && fsync(fileno(f)) == 0;
	return fclose(f) == 0 && written;
}

static int save(const char *dir, EVP_PKEY *key, X509 *x, struct gpuq_err *err)
{
	char key_path[PATH_MAX], cert_path[PATH_MAX];
	FILE *f;
	bool done = false;

	snprintf(key_path, sizeof(key_path), "%s/key.pem", dir);
	snprintf(cert_path, sizeof(cert_path), "%s/cert.pem", dir);
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", dir, strerror(errno));
	if (access(cert_path, F_OK) == 0 || access(key_path, F_OK) == 0)
		return gpuq_fail(err, GPUQ_EEXIST,
				 "%s holds a certificate or a key already: move them away first",
				 dir);
	f = create(key_path, 0600);
	if (f)
		done = finish(f, PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1);
	f = done ? create(cert_path, 0644) : NULL;
	if (f)
		done = finish(f, PEM_write_X509(f, x) == 1);
	else
		done = false;
	if (done)
		return 0;
	gpuq_fail(err, GPUQ_EIO, "%s: %s", dir, strerror(errno));
	unlink(key_path);
	unlink(cert_path);
	return GPUQ_EIO;
}

int tls_make_cert(const char *dir, const char *const *names, size_t n, char *pin,
		  struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	EVP_PKEY *key = NULL;
	X509 *x = NULL;
	int rc = names_text(names, n, &text, err);

	if (rc == 0) {
		key = EVP_EC_gen("P-256");
		x = key ? certificate(key, names[0], gpuq_buf_str(&text)) : NULL;
		if (!x || pin_of(key, pin) < 0)
			rc = gpuq_fail(err, GPUQ_EIO, "cannot create a certificate for %s",
				       gpuq_buf_str(&text));
	}
	if (rc == 0)
		rc = save(dir, key, x, err);
	X509_free(x);
	EVP_PKEY_free(key);
	gpuq_buf_done(&text);
	ERR_clear_error();
	return rc;
}
